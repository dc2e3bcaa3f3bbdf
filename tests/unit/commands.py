"""
A copy of the Makefile and .ci/run among stubs, to see what they would start and what they say.

Owns: the copy and the stubs, which note their words in a file. Nothing is installed, built or started.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.unit.layers import PROJECT

# What an outer make would tell an inner one, and what would change the way a run goes.
_FOREIGN = (
    "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES",
    "MPIRT_TEST_KUBECONFIG", "MPIRT_TEST_KUBERNETES", "PYTHON", "PYTEST_ARGS",
    "TEST_RUN_TIER", "TEST_RUN_SEED", "TEST_RUN_TOOLS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with the project's commands in it, and programs of ours in front of the machine's."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> Checkout:
        (root / ".ci").mkdir(parents=True)
        (root / "bin").mkdir()
        for name in ("Makefile", "pyproject.toml", ".ci/run"):
            shutil.copy2(PROJECT / name, root / name)
        return cls(root)

    def stub(self, program: str, script: str = "") -> None:
        """A program that notes its words and then does what `script` says. Without a slash it is on PATH."""
        file = self.root / (program if "/" in program else f"bin/{program}")
        file.parent.mkdir(parents=True, exist_ok=True)
        note = f'echo "{file.name} $*" >> {self.root}/calls'
        file.write_text(f"#!/bin/sh\n{note}\n{script}\n", encoding="utf-8")
        file.chmod(0o755)

    def calls(self) -> list[str]:
        """What the stubs were started with, in order."""
        file = self.root / "calls"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def environment(self, **more: str) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        return {**clean, "PATH": f"{self.root}/bin:{clean['PATH']}", **more}

    def run(self, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            check=False,
            cwd=self.root,
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
