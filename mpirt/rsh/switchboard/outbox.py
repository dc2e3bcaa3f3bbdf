"""
What is to be said to an agent, in order, and how much of it may be on its way.

Owns: the windows of the command's streams, and when a record is safe. No I/O: bytes go out where they are taken.
"""

from __future__ import annotations

from collections import deque

from mpirt import names
from mpirt.rsh.session.record import Record
from mpirt.rsh.switchboard import frames
from mpirt.rsh.switchboard.frames import Kind
from mpirt.rsh.switchboard.records import write_record

_KINDS = {1: Kind.OUT, 2: Kind.ERR}


class _Stream:
    """One stream of the command: what waits, and the count of it."""

    __slots__ = ("line_sizes", "lines_written", "pending", "sent", "taken", "written")

    def __init__(self) -> None:
        self.pending: deque[tuple[Kind, bytes]] = deque()
        self.taken = self.sent = self.written = 0
        # Lines of ours among it, which are not of the command's count.
        self.line_sizes: deque[int] = deque()
        self.lines_written = 0

    @property
    def waiting(self) -> int:
        """What the agent has not written."""
        return self.taken - self.written + sum(self.line_sizes)


class Outbox:
    """Everything that goes to one agent."""

    __slots__ = ("_bytes", "_keeping", "_streams", "is_keeping")

    def __init__(self, output: tuple[int, int] = (0, 0)) -> None:
        """`output`: how much of stdout and stderr the agent has got from another process. WRITTEN follows."""
        self._bytes = bytearray()
        self._streams = {1: _Stream(), 2: _Stream()}
        for stream, have in zip(self._streams.values(), output, strict=True):
            stream.taken = stream.sent = have
        self._keeping: bytes | None = None
        self.is_keeping = False
        """Whether a record is on its way."""

    def say(self, frame: bytes) -> None:
        """Something that stands outside of the streams."""
        self._bytes += frame

    def write(self, stream: int, data: bytes) -> None:
        """Output of the command."""
        found = self._streams[stream]
        found.taken += len(data)
        for at in range(0, len(data), frames.LARGEST):
            found.pending.append((_KINDS[stream], data[at : at + frames.LARGEST]))
        self._pump(found)

    def line(self, text: str) -> None:
        """A line of our own."""
        data = f"{names.RSH}: {' '.join(text.split())}\n".encode(errors="backslashreplace")[: frames.LARGEST]
        found = self._streams[2]
        found.line_sizes.append(len(data))
        found.pending.append((Kind.SAY, data))
        self._pump(found)

    def keep(self, record: Record | None) -> None:
        """A record, behind all output that was written before it."""
        self._keeping, self.is_keeping = frames.frame(Kind.KEEP, write_record(record)), True
        self._keep_if_its_turn()

    def written(self, stdout: int, stderr: int, lines: int) -> None:
        """What the agent has written, or dropped, by now."""
        out, err = self._streams[1], self._streams[2]
        out.written, err.written = max(out.written, stdout), max(err.written, stderr)
        for _ in range(min(lines - err.lines_written, len(err.line_sizes))):
            err.line_sizes.popleft()
            err.lines_written += 1
        self._pump(out)
        self._pump(err)
        self._keep_if_its_turn()

    @property
    def waiting(self) -> int:
        """How many bytes of one stream have not been written yet, at most."""
        return max(stream.waiting for stream in self._streams.values())

    @property
    def done(self) -> tuple[int, int]:
        """How much of the command's stdout and stderr has been written or dropped."""
        return self._streams[1].written, self._streams[2].written

    @property
    def unsent(self) -> bytearray:
        """What can be sent now. sent() takes it away."""
        return self._bytes

    def sent(self, count: int) -> bool:
        """So much was sent. Whether the record that was on its way is safe now."""
        del self._bytes[:count]
        if self._bytes or not self.is_keeping or self._keeping is not None:
            return False
        self.is_keeping = False
        return True

    def _pump(self, stream: _Stream) -> None:
        """Let go what there is room for."""
        while stream.pending:
            kind, data = stream.pending[0]
            room = frames.WINDOW - (stream.sent - stream.written) - sum(stream.line_sizes)
            if kind is Kind.SAY:
                room = len(data)
            if room <= 0:
                return
            stream.pending.popleft()
            if len(data) > room:
                stream.pending.appendleft((kind, data[room:]))
                data = data[:room]
            stream.sent += 0 if kind is Kind.SAY else len(data)
            self._bytes += frames.frame(kind, data)

    def _keep_if_its_turn(self) -> None:
        if self._keeping is not None and not any(stream.pending for stream in self._streams.values()):
            self._bytes += self._keeping
            self._keeping = None
