"""
One command on its way into a pod, whatever happens meanwhile: whether it ran, and what its agent made of it.

The command leaves a line in a file, and the agent's own log says how far it came: what it dialled, and whether it
gave the GO.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from testbed.ground import Namespace
from testbed.kube.wait import by_the_clock, until
from tests.e2e.rsh import agent
from tests.support.kubeconfigs import kubeconfig

# Far beyond what any of them takes, so that what has not ended by then hangs.
ENDS_WITHIN = 150.0
# A name that every API server's certificate is for, whatever address a proxy has.
_SERVER_NAME = "kubernetes.default.svc"


@dataclass(frozen=True)
class Outcome:
    """What became of one command."""

    case: str
    code: int | None
    """None: its agent did not end."""
    log: str
    runs: int
    is_safe: bool = False
    """Whether nothing happens to its pod."""

    @property
    def dials(self) -> int:
        return self.log.count("] dial: ")

    def problems(self) -> Iterator[str]:
        """What is wrong with it, in words."""
        _, go, _ = self.log.partition("] state: go")
        if self.code is None:
            yield "hangs"
        if self.runs > 1 or (self.code == 0 and self.runs != 1):
            yield f"ran {self.runs} times with code {self.code}"
        if self.code != 0 and not go:
            yield f"ended with {self.code} before GO"
        if self.is_safe and self.code != 0:
            yield f"ended with {self.code}, though a keeper held it"
        if "Traceback" in self.log or "mistake" in self.log:
            yield "told of a mistake of its own"


def argv(pod: str, case: str, runs: str) -> list[str]:
    """An agent that has a command leave a line, and more time to start it than a loaded machine can use up."""
    return [str(agent.RSH), "-n", "-o", "ConnectTimeout=120", pod, f"echo '{case}' >> {runs}"]


def environment(config: Path) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(config), "MPIRT_LOG": "debug"}


def server_address(namespace: Namespace) -> tuple[str, int]:
    """Where the API server listens."""
    server = json.loads(kubeconfig(namespace).read_text())["clusters"][0]["cluster"]["server"]
    url = urlsplit(server)
    assert url.hostname is not None
    return url.hostname, url.port or 443


def kubeconfig_by_way_of(namespace: Namespace, port: int) -> Path:
    """A kubeconfig that leads to the API server through a proxy on this machine."""
    config = json.loads(kubeconfig(namespace).read_text())
    config["clusters"][0]["cluster"] |= {"server": f"https://127.0.0.1:{port}", "tls-server-name": _SERVER_NAME}
    path = namespace.folder / f"kubeconfig-{port}"
    path.write_text(json.dumps(config))
    return path


def wait_for_the_end_of_all(namespace: Namespace, pod: str) -> None:
    """
    Wait until nothing is left in a pod that could still start a command, or run one.

    A shell by itself that has been there before is neither: containerd leaves the one whose connection ended just
    while it was started, and nobody has anything to say to that any more.
    """
    before: set[str] = set()

    def are_over() -> bool:
        nonlocal before
        processes = namespace.kubectl.execute(pod, "ps", "-o", "pid,ppid,args", check=False)
        if not processes:
            # Of a pod that has just been replaced, the kubelet may still find the container that it ends.
            return False
        shells, alone = _shells(processes)
        are_over = shells == alone <= before
        before = alone
        return are_over

    what = "the end of all shells"
    until(are_over, within=60, what=what, instead=lambda: namespace.kubectl.execute(pod, "ps", check=False))


def _shells(processes: str) -> tuple[set[str], set[str]]:
    """The shells that were started for agents, and their children, by pid; and those of them that have no kin."""
    parents = {pid: parent for pid, parent, _ in (line.split(maxsplit=2) for line in processes.splitlines())}
    shells = {line.split()[0] for line in processes.splitlines() if "read -r mpirt" in line}
    # What the runtime starts has its parent outside of the pod.
    return shells, {pid for pid in shells if parents[pid] == "0" and pid not in parents.values()}


class Start:
    """An agent at work."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    def says(self, words: str) -> None:
        """Wait until its log has these words."""
        until(lambda: words in self.log(), within=60, what=f"the agent to say {words!r}")

    def log(self) -> str:
        return self._log.read_text()

    def code(self) -> int | None:
        """Its exit code."""
        try:
            return self._process.wait(by_the_clock(ENDS_WITHIN))
        except subprocess.TimeoutExpired:
            return None


@contextmanager
def started(namespace: Namespace, pod: str, case: str, runs: Path) -> Iterator[Start]:
    """Start the command, by the shortest way."""
    log = namespace.folder / "log"
    with (
        log.open("wb") as file,
        subprocess.Popen(
            argv(pod, case, str(runs)),
            env=environment(kubeconfig(namespace)),
            stdin=subprocess.DEVNULL,
            stderr=file,
        ) as process,
    ):
        try:
            yield Start(process, log)
        finally:
            process.kill()
