"""
What waits in the switchboard for one agent, and how much may wait for all of them together.

Owns: the order of what goes to an agent, how much of it may be under way, and which commands are not to be read
any more. A keeper sends 2 MiB of each stream ahead of a reader that stands still, which is nothing for one command
and gigabytes for a thousand. No I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from mpirt import names
from mpirt.errors import PeerError
from mpirt.rsh.protocol.framing import frame, header
from mpirt.rsh.session.task import Record
from mpirt.rsh.switchboard import frames
from mpirt.rsh.switchboard.frames import Kind, write_record

_KINDS = {1: Kind.OUT, 2: Kind.ERR}


class _Stream:
    """One stream of the command: what waits, and the count of it."""

    __slots__ = ("_line_sizes", "_lines_waiting", "lines_written", "pending", "sent", "taken", "written")

    def __init__(self) -> None:
        self.pending: deque[tuple[Kind, bytes]] = deque()
        self.taken = self.sent = self.written = 0
        # Lines of ours, which are not of the command's count: those under way, and the bytes of the others.
        self._line_sizes: deque[int] = deque()
        self._lines_waiting = 0
        self.lines_written = 0

    @property
    def waiting(self) -> int:
        """What the agent has not written."""
        return self.taken - self.written + sum(self._line_sizes) + self._lines_waiting

    @property
    def held(self) -> int:
        """What the agent has not got."""
        return self.taken - self.sent + self._lines_waiting

    @property
    def lines_sent(self) -> int:
        return self.lines_written + len(self._line_sizes)

    def add(self, data: bytes, kind: Kind) -> None:
        if kind is Kind.SAY:
            self._lines_waiting += len(data)
        else:
            self.taken += len(data)
        self.pending.append((kind, data))

    def take(self) -> tuple[Kind, bytes] | None:
        """The next frame that there is room for. A line goes whole."""
        if not self.pending:
            return None
        kind, data = self.pending[0]
        room = frames.WINDOW - (self.sent - self.written) - sum(self._line_sizes)
        if room < (len(data) if kind is Kind.SAY else 1):
            return None
        self.pending.popleft()
        if len(data) > room:
            self.pending.appendleft((kind, data[room:]))
            data = data[:room]
        if kind is Kind.SAY:
            self._lines_waiting -= len(data)
            self._line_sizes.append(len(data))
        else:
            self.sent += len(data)
        return kind, data

    def has_written(self, count: int, lines: int) -> None:
        self.written = max(self.written, count)
        while self.lines_written < lines:
            self._line_sizes.popleft()
            self.lines_written += 1


class Outbox:
    """Everything that goes to one agent."""

    __slots__ = ("_keeping", "_streams", "is_keeping", "unsent")

    def __init__(self, output: tuple[int, int] = (0, 0)) -> None:
        """`output`: how much of stdout and stderr the agent has got from another process. WRITTEN follows."""
        self.unsent = bytearray()
        """What can be sent now. sent() takes it away."""
        self._streams = {1: _Stream(), 2: _Stream()}
        for stream, have in zip(self._streams.values(), output, strict=True):
            stream.taken = stream.sent = have
        self._keeping: bytes | None = None
        self.is_keeping = False
        """Whether a record is on its way."""

    def say(self, frame: bytes) -> None:
        """Something that stands outside of the streams."""
        self.unsent += frame

    def write(self, stream: int, data: bytes) -> None:
        """Output of the command."""
        for at in range(0, len(data), frames.LARGEST):
            self._streams[stream].add(data[at : at + frames.LARGEST], _KINDS[stream])
        self._pump(self._streams[stream])

    def line(self, text: str) -> None:
        """A line of our own."""
        data = f"{names.RSH}: {' '.join(text.split())}".encode(errors="backslashreplace")[: frames.LARGEST - 1]
        data += b"\n"
        self._streams[2].add(data, Kind.SAY)
        self._pump(self._streams[2])

    def keep(self, record: Record | None) -> None:
        """A record, behind all output that was written before it."""
        self._keeping, self.is_keeping = frame(Kind.KEEP, write_record(record)), True
        self._keep_if_its_turn()

    def written(self, stdout: int, stderr: int, lines: int) -> None:
        """What the agent has written, or dropped, by now. Raises PeerError."""
        out, err = self._streams[1], self._streams[2]
        if stdout > out.sent or stderr > err.sent or lines > err.lines_sent:
            raise PeerError("an agent says that it has written more than it was sent")
        out.has_written(stdout, 0)
        err.has_written(stderr, lines)
        self._pump(out)
        self._pump(err)
        self._keep_if_its_turn()

    @property
    def held(self) -> int:
        """How many bytes of output are in this process: the agent has the others that wait."""
        return len(self.unsent) + sum(stream.held for stream in self._streams.values())

    @property
    def waiting(self) -> int:
        """How many bytes of one stream have not been written yet, at most."""
        return max(stream.waiting for stream in self._streams.values())

    @property
    def unwritten(self) -> int:
        """How many bytes of both streams have not been written yet."""
        return sum(stream.waiting for stream in self._streams.values())

    @property
    def taken(self) -> tuple[int, int]:
        """How much of the command's stdout and stderr has come."""
        return self._streams[1].taken, self._streams[2].taken

    @property
    def done(self) -> tuple[int, int]:
        """How much of the command's stdout and stderr has been written or dropped."""
        return self._streams[1].written, self._streams[2].written

    def sent(self, count: int) -> bool:
        """So much was sent. Whether the record that was on its way is safe now."""
        del self.unsent[:count]
        if self.unsent or not self.is_keeping or self._keeping is not None:
            return False
        self.is_keeping = False
        return True

    def _pump(self, stream: _Stream) -> None:
        """Let go what there is room for."""
        while (taken := stream.take()) is not None:
            kind, data = taken
            self.unsent += header(kind, len(data))
            self.unsent += data

    def _keep_if_its_turn(self) -> None:
        if self._keeping is not None and not any(stream.pending for stream in self._streams.values()):
            self.unsent += self._keeping
            self._keeping = None


LIMIT = 64 * 1024 * 1024
# What each may have in any case, so that a few that are stuck take nothing from the others.
SHARE = 256 * 1024


class Budget:
    """What waits, by command."""

    __slots__ = ("_held", "_limit", "_share", "_stopped", "_total")

    def __init__(self, limit: int = LIMIT, share: int = SHARE) -> None:
        self._limit, self._share = limit, share
        self._held: dict[object, int] = {}
        self._total = 0
        self._stopped: dict[object, Callable[[], None]] = {}

    @property
    def total(self) -> int:
        """How many bytes wait."""
        return self._total

    def holds(self, who: object, count: int) -> None:
        """Note how many bytes of theirs wait now, and report those that may be read again."""
        before = self._held.pop(who, 0)
        if count:
            self._held[who] = count
        self._total += count - before
        if count < before:
            # While there is no room for all, only their own share may have become free.
            self._resume(tuple(self._stopped) if self._total <= self._limit - self._share else (who,))

    def may_be_read(self, who: object, again: Callable[[], None]) -> bool:
        """Whether more of theirs may be read. If not, `again` is called when that may have changed."""
        if self._has_room(who):
            self._stopped.pop(who, None)
            return True
        self._stopped[who] = again
        return False

    def forget(self, who: object) -> None:
        """They have ended."""
        self._stopped.pop(who, None)
        self.holds(who, 0)

    def _has_room(self, who: object) -> bool:
        # One that is stopped waits for more room than a byte: else all of them would take turns at the limit.
        limit = self._limit - self._share if who in self._stopped else self._limit
        return self._total <= limit or self._held.get(who, 0) < self._share

    def _resume(self, candidates: tuple[object, ...]) -> None:
        for who in candidates:
            # What one of them does then may stop the next one.
            if who in self._stopped and self._has_room(who):
                self._stopped.pop(who)()
