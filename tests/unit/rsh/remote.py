"""
A pod's side of a session, for real: a shell on this machine with pipes where the exec's streams would be.

Owns: starting the bootstrap, telling markers from output, and seeing which processes of a session are left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar

from mpirt.rsh.invocation.order import Order
from mpirt.rsh.protocol import wrapper
from mpirt.rsh.protocol.greeting import BOOTSTRAP
from mpirt.rsh.protocol.markers import End, Exit, Hello, Marker, Started
from mpirt.rsh.protocol.streams import MarkerFilter

M = TypeVar("M")
NONCE = "0123456789abcdef"
PATIENCE = 20.0


class Remote:
    """One exec: the shell leads a session of its own, as a container runtime has it."""

    def __init__(
        self, shell: Sequence[str], order: Order, *, own_session: bool = True, path: str = os.defpath
    ) -> None:
        self.process = subprocess.Popen(
            [*shell, *BOOTSTRAP[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=own_session,
            cwd="/",
            env={"PATH": path},
        )
        self.markers: list[Marker] = []
        self.output = {"stdout": b"", "stderr": b""}
        self._news = threading.Condition()
        self._reading = threading.Event()
        self._reading.set()
        self._readers = [self._reader("stdout", self.process.stdout), self._reader("stderr", self.process.stderr)]
        self.send(wrapper.payload(order))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reading.set()
        self.hang_up()
        while left := members(self.process.pid):
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        self.process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def _reader(self, name: str, stream: IO[bytes] | None) -> threading.Thread:
        assert stream is not None
        markers = MarkerFilter(NONCE)

        def read() -> None:
            while self._reading.wait() and (data := stream.read(65536)):
                with self._news:
                    for part in markers.feed(data):
                        if isinstance(part, bytes):
                            self.output[name] += part
                        else:
                            self.markers.append(part)
                    self._news.notify_all()

        thread = threading.Thread(target=read)
        thread.start()
        return thread

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        view = memoryview(data)
        with suppress(BrokenPipeError):
            while view:
                view = view[self.process.stdin.write(view) :]

    def hang_up(self) -> None:
        """The end of the exec's stdin, as when the client was killed."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ends(self) -> int:
        """Its code, once it has ended and all that it said is here."""
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return code

    def stop_reading(self) -> None:
        self._reading.clear()

    def read_on(self) -> None:
        self._reading.set()

    def until(self, happened: Callable[[], bool]) -> None:
        with self._news:
            assert self._news.wait_for(happened, PATIENCE), (self.markers, self.output)

    def expect(self, kind: type[M], *, count: int = 1) -> M:
        """The last of `count` markers of a kind, once they have come."""
        self.until(lambda: sum(isinstance(marker, kind) for marker in self.markers) >= count)
        return [marker for marker in self.markers if isinstance(marker, kind)][count - 1]

    def go(self) -> Started:
        self.expect(Hello)
        self.send(wrapper.GO)
        return self.expect(Started)

    def code(self) -> int:
        """How the command ended, once all that it wrote is here too."""
        self.expect(End)
        return self.expect(Exit).code

    def end_by(self, number: int) -> None:
        """Tell the command to end, again and again as the client does, until it has ended."""
        deadline = time.monotonic() + PATIENCE
        with self._news:
            while not any(isinstance(marker, Exit) for marker in self.markers):
                assert time.monotonic() < deadline, (self.markers, self.output)
                self.send(wrapper.ending_by(number))
                self._news.wait(0.1)

    def prints(self, text: bytes) -> None:
        self.until(lambda: text in self.output["stdout"])

    def leaves(self, *commands: str) -> None:
        """
        Wait until nothing but these command lines is left in the session of a wrapper that has ended.

        What was killed is gone a moment later, and what was started is first a copy of its parent.
        """
        self.process.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while self.lines() != set(commands):
            assert time.monotonic() < deadline, self.lines()
            time.sleep(0.01)

    def lines(self) -> set[str]:
        return {command_line(pid) for pid in members(self.process.pid)}


@contextmanager
def running(shell: Sequence[str], command: bytes | str, /, **settings: object) -> Iterator[Remote]:
    """A remote whose command has been started."""
    text = command if isinstance(command, bytes) else command.encode()
    with Remote(shell, Order(NONCE, text, **settings)) as remote:  # type: ignore[arg-type] # tests name them right
        remote.go()
        yield remote


def members(session: int) -> list[int]:
    """The pids of a session that aren't only waiting to be buried."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[3] == str(session) and fields[0] not in "ZX":
            found.append(int(stat.parent.name))
    return found


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def within(seconds: float, happened: Callable[[], bool]) -> bool:
    """Whether something outside came about in time."""
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
