"""
Many agents at a time, each with its command, all by one switchboard.

Owns: what each has printed by now, and its end. What they print is read at once, but for a reader that does not.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from testbed.ground import Namespace
from testbed.kube.wait import by_the_clock
from tests.e2e.rsh import agent

_CHUNK = 1 << 16


class Member:
    """An agent whose output is read as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.output = bytearray()
        self._has_come = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def until(self, size: int, *, within: float) -> None:
        """Wait until it has printed so many bytes."""
        with self._has_come:
            has_come = self._has_come.wait_for(lambda: len(self.output) >= size, by_the_clock(within))
        assert has_come, bytes(self.output[-80:])

    def say(self, data: bytes) -> None:
        """Write to its command's stdin."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def end(self, *, within: float) -> tuple[int, str]:
        """Wait for its end: the code, and what it said on stderr."""
        code = self.process.wait(by_the_clock(within))
        self._reader.join(by_the_clock(within))
        assert self.process.stderr is not None
        return code, self.process.stderr.read().decode()

    def stop(self) -> None:
        """Kill it, and wait for both."""
        self.process.kill()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while data := self.process.stdout.read(_CHUNK):
            with self._has_come:
                self.output += data
                self._has_come.notify_all()


@contextmanager
def agents(
    namespace: Namespace, pods: Sequence[str], count: int, command: str
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start so many, in turn in these pods; who is left at the end is killed."""
    env = agent.environment(namespace)
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        started = []
        for number in range(count):
            argv = [str(agent.RSH), pods[number % len(pods)], command]
            process = subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
            stack.enter_context(process)
            stack.callback(process.kill)
            started.append(process)
        yield started


@contextmanager
def members(namespace: Namespace, pods: Sequence[str], count: int, command: str) -> Iterator[list[Member]]:
    """The same, and all that they print is read."""
    with agents(namespace, pods, count, command) as started, ExitStack() as stack:
        found = [Member(process) for process in started]
        for member in found:
            stack.callback(member.stop)
        yield found
