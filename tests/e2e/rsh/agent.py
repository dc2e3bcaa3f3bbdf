"""mpirt-rsh, and kubectl exec beside it, started by the test itself against a namespace of the cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.ground import Namespace
from testbed.kube.wait import Moment
from tests.support.kubeconfigs import kubeconfig

RSH = Path(sys.executable).with_name("mpirt-rsh")
MPIRT = RSH.with_name("mpirt")
_LOOKS_EVERY = 0.5


@dataclass(frozen=True)
class Ended:
    """How a remote command's agent ended."""

    code: int | None
    """None: it did not, within the time it was given."""
    seconds: float
    """Without those in which the machine was busy with others."""
    output: bytes
    errors: str


class Agent:
    """An agent that runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._ended: Moment | None = None
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._waiter.start()

    def line(self) -> str:
        """The next line of its output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().rstrip("\n")

    def end(self, *, within: float, since: Moment | None = None) -> Ended:
        """Wait for its end; seconds are counted from a moment on, which is now if nobody says otherwise."""
        since = since or Moment.now()
        while not self._ended and since.until(Moment.now()) < within:
            self._waiter.join(_LOOKS_EVERY)
        if self._ended is None:
            return Ended(None, since.until(Moment.now()), b"", "")
        output, errors = self.process.communicate()
        return Ended(self.process.returncode, since.until(self._ended), output, errors.decode())

    def _wait(self) -> None:
        """Note the moment of its end, whatever else the test waits for then."""
        self.process.wait()
        self._ended = Moment.now()


@contextmanager
def rsh(
    namespace: Namespace, *words: str, account: str = "", env: Mapping[str, str] | None = None
) -> Iterator[Agent]:
    """Start mpirt-rsh with these words, as the administrator or as a service account."""
    variables = environment(namespace, account=account, **(env or {}))
    with _started([str(RSH), *words], variables) as agent:
        yield agent


@contextmanager
def kubectl_exec(namespace: Namespace, pod: str, command: str) -> Iterator[Agent]:
    with _started(namespace.kubectl.argv("exec", "--stdin", pod, "--", "/bin/sh", "-c", command), None) as agent:
        yield agent


def environment(namespace: Namespace, *, account: str = "", **more: str) -> dict[str, str]:
    """The variables of an agent: our own, those that lead to the namespace, and more."""
    return {**os.environ, "KUBECONFIG": str(kubeconfig(namespace, account=account)), **more}


@contextmanager
def _started(argv: list[str], env: Mapping[str, str] | None) -> Iterator[Agent]:
    """Its stdin stays open and silent, as Hydra's does; whatever is left of it is killed at the end."""
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )
    with process:
        try:
            yield Agent(process)
        finally:
            process.kill()
