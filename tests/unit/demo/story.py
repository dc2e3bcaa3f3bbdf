"""A kubectl that says what a test has it say, in front of the machine's, and the demo run on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unit.layers import PROJECT

NAMED = {"CONTROLLER_IMAGE": "here/controller:1", "RUNTIME_IMAGE": "here/runtime:1", "PI_IMAGE": "here/pi:1"}

_KUSTOMIZED = """\
apiVersion: policy/v1
namespace: mpirt
image: mpirt/controller:latest
value: mpirt/runtime:latest
"""
_PODS = [
    {"metadata": {"name": f"pi-worker-{n}"}, "spec": {"nodeName": f"node-{n + 1}"}, "status": {}} for n in (0, 1)
]


def items(*found: Mapping[str, Any]) -> str:
    return json.dumps({"kind": "List", "items": list(found)})


def job(kind: str, message: str = "") -> str:
    """A job of which one condition holds."""
    condition = {"type": kind, "status": "True", "message": message}
    return json.dumps({"kind": "MPIJob", "status": {"conditions": [condition]}})


# What kubectl prints, by words of its command line; the first that are found count.
HAPPY = {
    "config current-context": "prod",
    "config view": "https://prod.example.com",
    "get deployments": items(),
    "get mpijob pi": job("Succeeded"),
    "get mpijob": "NAME  STATE\npi    Succeeded",
    "get pods": items(*_PODS),
    "kustomize": _KUSTOMIZED,
    "api-versions": "policy/v1",
    "logs": "rank 1 of 2 runs on pi-worker-1\nrank 0 of 2 runs on pi-worker-0\npi is about 3.14",
}


@dataclass(frozen=True)
class Stage:
    """A folder with such a kubectl."""

    root: Path

    def kubectl(self, said: Mapping[str, str], **scripts: str) -> None:
        """`said` is printed; `scripts`, by a word of the command line, are run instead."""
        cases = [f"  *'{words}'*) {script};;" for words, script in scripts.items()]
        for number, (words, text) in enumerate(said.items()):
            (self.root / f"said-{number}").write_text(f"{text}\n", encoding="utf-8")
            cases.append(f"  *'{words}'*) cat '{self.root}/said-{number}';;")
        script = [f"echo \"$*\" >> '{self.root}/calls'", 'case "$*" in', *cases, "esac"]
        program = self.root / "kubectl"
        program.write_text("\n".join(["#!/bin/sh", *script, ""]), encoding="utf-8")
        program.chmod(0o755)

    def calls(self) -> list[str]:
        """The words of each call, without those that name the cluster."""
        return [
            line.removeprefix("--context=prod ")
            for line in (self.root / "calls").read_text(encoding="utf-8").splitlines()
        ]

    def run(self, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._argv(),
            env=self._environment(variables),
            cwd=PROJECT,
            check=False,
            capture_output=True,
            text=True,
        )

    def interrupted(self, at: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run it, and send it SIGINT once the stub has been called with these words and said so in a pipe."""
        os.mkfifo(self.root / "reached")
        # Not into pipes: a stub that was just being started may outlive the demo, and would keep them open.
        with (
            (self.root / "out").open("w") as out,
            (self.root / "err").open("w") as err,
            subprocess.Popen(
                self._argv(), env=self._environment(variables), cwd=PROJECT, stdout=out, stderr=err
            ) as process,
        ):
            assert (self.root / "reached").read_text(encoding="utf-8").strip() == at
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=60)
        said = [(self.root / name).read_text(encoding="utf-8") for name in ("out", "err")]
        return subprocess.CompletedProcess(process.args, code, *said)

    def stops_here(self, at: str) -> str:
        """A script that tells `interrupted` that it has come so far, and then stays."""
        return f"echo {at} > '{self.root}/reached'; exec sleep 60"

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        own = {"CLUSTER", "REGISTRY", "KEEP", *NAMED}
        clean = {name: value for name, value in os.environ.items() if name not in own}
        return {**clean, "PATH": f"{self.root}:{clean['PATH']}", "CLUSTER": "current", **variables}

    @staticmethod
    def _argv() -> list[str]:
        return [sys.executable, "-m", "demo"]
