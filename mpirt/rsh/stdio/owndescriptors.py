"""
The command's streams where they are this process's own: its stdin, stdout and stderr, as ports on the loop.

What is kept here is kept nowhere else: whoever kills this process ends the command too.
"""

from __future__ import annotations

import os
import select

from mpirt.rsh.ports.loop import FOR_EVER
from mpirt.rsh.session import events
from mpirt.rsh.stdio.descriptors import Stdin
from mpirt.rsh.stdio.output import OutputPort

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.rsh.ports.loop import Loop
    from mpirt.rsh.ports.sessionio import SessionIO
    from mpirt.rsh.session.task import Record

_STDIN, _STDOUT, _STDERR = 0, 1, 2
# How much of stdin is read before the rest of the loop gets its turn.
_LARGEST = 128 * 1024


class OwnDescriptors:
    """The three descriptors of this process."""

    __slots__ = ("_loop", "_outputs", "_running", "_stdin")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._outputs = {fd: OutputPort(fd) for fd in (_STDOUT, _STDERR)}
        self._running: SessionIO | None = None
        self._stdin: _StdinPort | None = None

    def serve(self, running: SessionIO) -> None:
        """Carry the streams of this session from now on."""
        self._running = running
        self._stdin = stdin = _StdinPort(running)
        for output in self._outputs.values():
            self._loop.add(output, _drainer(output, running), group=running)
        self._loop.add(stdin, lambda: _read(stdin, running), group=running)

    def write(self, stream: int, data: bytes) -> None:
        """Write the command's output."""
        self._outputs[stream].add(data)

    def say(self, line: str) -> None:
        """Tell the person a line."""
        self._outputs[_STDERR].say(line)

    @property
    def waiting(self) -> int:
        """How many bytes of one stream have not been written yet, at most."""
        return max(output.waiting for output in self._outputs.values())

    @property
    def is_crowded(self) -> bool:
        """Whether others want the room that the output takes: there are none here."""
        return False

    @property
    def done(self) -> tuple[int, int]:
        """How much of the command's stdout and stderr has been written, or dropped for want of a reader."""
        return self._outputs[_STDOUT].done, self._outputs[_STDERR].done

    def broken_by(self, stream: int) -> int:
        """The errno for which a stream can't be written any more; 0 while it can."""
        error = self._outputs[stream].broken_by
        return 0 if error is None else error.errno or 0

    def keep(self, record: Record | None) -> None:
        """Nobody would ask for the record when this process is gone: it is as good as kept."""
        if self._running is not None:
            self._running.hear(events.Kept(record))

    def settle(self, stdin_room: int, stdin_taken: int) -> None:
        """Output is written as it comes, and the port of stdin asks for its room by itself."""

    def read_no_more(self) -> None:
        """Nobody wants stdin any more."""
        if self._stdin is not None:
            self._loop.remove(self._stdin)


class _StdinPort(Stdin):
    """Our stdin, as far as the session has room for it."""

    __slots__ = ("_running",)

    def __init__(self, running: SessionIO) -> None:
        super().__init__(_STDIN)
        self._running = running

    @property
    def wants(self) -> int:
        return select.POLLIN if self._running.stdin_room else 0

    @staticmethod
    def timeout() -> float:
        return FOR_EVER


def _read(stdin: _StdinPort, running: SessionIO) -> None:
    if not running.stdin_room:
        return
    try:
        data = stdin.read(min(running.stdin_room, _LARGEST))
    except OSError as error:
        running.hear(events.StdinBroken(os.strerror(error.errno or 0)))
        return
    if data is not None:
        running.hear(events.StdinRead(data))


def _drainer(output: OutputPort, running: SessionIO) -> Callable[[], None]:
    def drain() -> None:
        output.drain()
        running.output_moved()

    return drain
