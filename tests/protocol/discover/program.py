"""mpirt-discover as a process of its own. Owns: how it is started, and how it ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.apiserver.pods import Pod, pod
from tests.apiserver.server import ApiServer

DISCOVER = Path(sys.executable).with_name("mpirt-discover")
# More than anything here takes.
PATIENCE = 60.0
# Seconds for an answer that comes at once, however long that takes on a busy machine.
AMPLE = "30"
NOTHING: Mapping[str, str] = {}
JOB = {"mpirt.dev/job": "train"}


@dataclass(frozen=True)
class Ended:
    """How it ended, what it printed and what it said."""

    code: int
    output: str
    errors: str
    seconds: float

    @property
    def line(self) -> str:
        """The one line that it said."""
        assert self.errors.startswith("mpirt-discover: "), self.errors
        assert self.errors.count("\n") == 1, self.errors
        return self.errors.removeprefix("mpirt-discover: ").rstrip("\n")

    @property
    def last(self) -> str:
        """The last line that it said."""
        return self.errors.splitlines()[-1].removeprefix("mpirt-discover: ")


class Program:
    """The program beside a server."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.kubeconfig = str(server.kubeconfig(folder))

    def environment(self, more: Mapping[str, str] = NOTHING) -> dict[str, str]:
        """A clean environment in which only the kubeconfig leads to a cluster, and nothing to a switchboard."""
        path = f"{DISCOVER.parent}:{os.environ['PATH']}"
        own = {"PATH": path, "HOME": str(self.folder), "TMPDIR": str(self.folder), "KUBECONFIG": self.kubeconfig}
        # In the default place there may be a switchboard of somebody else's.
        own["MPIRT_SWITCHBOARD"] = str(self.folder / "nobody")
        return {**own, "MPIRT_DISCOVER_TIMEOUT": AMPLE, **more}

    def start(
        self, argv: Sequence[str], *, env: Mapping[str, str] = NOTHING, stderr: int = subprocess.PIPE
    ) -> Ended:
        """Run any program in that environment, to its end."""
        begin = time.monotonic()
        done = subprocess.run(
            argv,
            check=False,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=PATIENCE,
        )
        return Ended(done.returncode, done.stdout, done.stderr or "", time.monotonic() - begin)

    def run(self, *words: str, env: Mapping[str, str] = NOTHING, stderr: int = subprocess.PIPE) -> Ended:
        """Run it with these words."""
        return self.start([str(DISCOVER), *words], env=env, stderr=stderr)

    def job(self, *words: str, env: Mapping[str, str] = NOTHING, stderr: int = subprocess.PIPE) -> Ended:
        """Run it for the job of these tests."""
        return self.run("--selector", "mpirt.dev/job=train", *words, env=env, stderr=stderr)


def worker(number: int, *, ready: bool = True, **annotations: str) -> Pod:
    """A pod of the job; annotations are ours."""
    ours = {f"mpirt.dev/{name}": text for name, text in annotations.items()}
    return pod(f"w-{number}", labels=JOB, annotations=ours, phase="Running" if ready else "Pending")
