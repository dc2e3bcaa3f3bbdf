"""
A keeper as docs/keeper.md describes it, without processes, and commands that follow a script.

Owns: one command with its output, and what its keeper answers. No I/O, no clock.

What a command may be, separated by "; ": `echo TEXT`, `true`, `exit N`, `hold` (prints "up" and stays), and
`flow BYTES`, whose byte at place i is i % 251.
"""

from __future__ import annotations

import signal
import struct
from dataclasses import dataclass

PROTOCOL = 1
ATTACH, CONTROL, STDIN, STDIN_END, ACK, DONE, BEAT, FENCE, USAGE = range(1, 10)
ATTACHED, STARTED, TAKEN, CONTROLLED, OUT, ERR, EXIT, ANSWER, FAILED, USED = range(33, 43)
WINDOW = 2 * 1024 * 1024
LARGEST_PIECE = 32752
_HEADER = 16
_INVALID = 22
_NOT_FOUND = 127

PERIOD = 251
_PATTERN = bytes(range(PERIOD)) * (LARGEST_PIECE // PERIOD + 2)
_HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGTSTP, signal.SIGTTIN}
_BY_END = 2
_NO_SIGNAL = -1
# Two seconds, 3 MiB, one process.
_USAGE = struct.pack("<QQI", 2_000_000, 3 << 20, 1)


class Broken(Exception):
    """The agent has broken a rule, which ends the connection."""


@dataclass(slots=True)
class _Segment:
    """A part of what the command writes: words of its own, or so much of the pattern."""

    begin: int
    size: int
    text: bytes = b""

    def read(self, at: int, most: int) -> bytes:
        """No more than so many bytes from a place in the whole output on."""
        place = at - self.begin
        size = min(most, self.size - place)
        if self.text:
            return self.text[place : place + size]
        return _PATTERN[place % PERIOD :][:size]


class Command:
    """What a command writes, and how it ends; `exit` is None while it stays."""

    __slots__ = ("exit", "segments", "size")

    def __init__(self, line: str) -> None:
        self.segments: list[_Segment] = []
        self.size = 0
        self.exit: tuple[int, int] | None = None
        for step in line.split("; "):
            if not self._step(*step.strip().partition(" ")[::2]):
                return
        self.exit = self.exit or (0, 0)

    def _step(self, word: str, rest: str) -> bool:
        """Do it; whether the next one follows."""
        match word:
            case "echo":
                self._write(rest.encode() + b"\n")
            case "flow":
                self._append(_Segment(self.size, int(rest)))
            case "hold":
                self._write(b"up\n")
                return False
            case "exit":
                self.exit = (0, int(rest))
                return False
            case "true" | "":
                pass
            case _:
                self.exit = (0, _NOT_FOUND)
                return False
        return True

    def read(self, at: int) -> bytes:
        """The next piece of its output; nothing at the end."""
        for segment in self.segments:
            if at < segment.begin + segment.size:
                return segment.read(at, min(LARGEST_PIECE, self.size - at))
        return b""

    def killed(self, number: int, written: int) -> None:
        """A signal has come: it ends the command, with so much written, unless that has ended."""
        if number not in _HARMLESS and (self.exit is None or written < self.size):
            self.exit, self.size = (1, number), written

    def _write(self, text: bytes) -> None:
        self._append(_Segment(self.size, len(text), text))

    def _append(self, segment: _Segment) -> None:
        self.segments.append(segment)
        self.size += segment.size


class Keeper:
    """One command's, over one connection after the other."""

    # fmt: off
    __slots__ = (
        "_acked", "_command", "_controls", "_early_signal", "_ended_by", "_epoch", "_exit_said", "_parts", "_said",
        "_sent", "_taken", "_unread", "is_connected", "is_over", "lease",
    )
    # fmt: on

    def __init__(self) -> None:
        self.is_connected = False
        self.is_over = False
        """Nothing is left of it but what it still has to say."""
        self.lease = 40.0
        self._command: Command | None = None
        self._epoch = self._controls = self._taken = 0
        self._acked = self._sent = 0
        self._exit_said = False
        self._early_signal = _NO_SIGNAL
        self._ended_by = 0
        self._parts = b""
        self._unread = b""
        self._said: list[bytes] = []

    @property
    def is_started(self) -> bool:
        """Whether there is a command."""
        return self._command is not None

    def connect(self) -> None:
        """There is a new connection; the last one, if there still is one, counts no more."""
        self.is_connected, self._unread, self._said = False, b"", []

    def receive(self, data: bytes) -> list[bytes]:
        """The agent's bytes, cut anywhere; gives what there is to say. Raises Broken."""
        data = self._unread + data if self._unread else data
        at = 0
        while len(data) - at >= _HEADER:
            after = at + _HEADER + int.from_bytes(data[at + 1 : at + 4], "little")
            if after > len(data):
                break
            self._frame(data[at : at + _HEADER], data[at + _HEADER : after])
            at = after
        self._unread = data[at:]
        self._write()
        said, self._said = self._said, []
        return said

    def _frame(self, head: bytes, payload: bytes) -> None:  # noqa: C901  a table
        kind, epoch = head[0], int.from_bytes(head[4:8], "little")
        number = int.from_bytes(head[8:16], "little")
        if (kind == ATTACH) == self.is_connected:
            raise Broken("ATTACH comes first, and once")
        if not (epoch > self._epoch if kind == ATTACH else epoch == self._epoch):
            raise Broken(f"epoch {epoch} after {self._epoch}")
        match kind:
            case 1:
                self._attach(epoch, payload)
            case 2:
                self._control(number, payload)
            case 3:
                self._stdin(number, len(payload))
            case 5:
                self._acknowledged(payload, self._sent)
            case 6:
                self._done()
            case 7:
                self._say(ANSWER, number)
            case 9:
                self._say(USED, number, _USAGE if self._command else bytes(len(_USAGE)))
            case 4:
                pass
            case _:
                raise Broken(f"there is no frame {kind} of an agent's")

    def _attach(self, epoch: int, payload: bytes) -> None:
        self._epoch, self.is_connected, self._exit_said = epoch, True, False
        self._acknowledged(payload, self._command.size if self._command else 0)
        self._sent = self._acked
        flag = bytes((self.is_started,))
        self._say(ATTACHED, self._controls, flag + self._taken.to_bytes(8, "little"))
        if self.is_started:
            self._say(STARTED, 77, b"\1")

    def _acknowledged(self, payload: bytes, most: int) -> None:
        stdout, stderr = (int.from_bytes(payload[at : at + 8], "little") for at in (0, 8))
        if not self._acked <= stdout <= most or stderr:
            raise Broken(f"{stdout} and {stderr} bytes are acknowledged of {most} and 0, after {self._acked}")
        self._acked = stdout

    def _control(self, number: int, payload: bytes) -> None:
        if not number:
            self._end(payload)
            return
        if number > self._controls + 1:
            raise Broken(f"control {number} follows {self._controls}")
        if number <= self._controls:
            return
        self._controls = number
        kind, rest = payload[:1], payload[1:]
        if kind == b"s":
            self._parts += rest
        elif kind == b"S":
            self._start(self._parts + rest)
        elif kind == b"E":
            self._end(payload)
        elif self._command is not None:
            self._command.killed(rest[0], self._sent)
        else:
            self._early_signal = rest[0]
        self._say(CONTROLLED, number)

    def _end(self, payload: bytes) -> None:
        if self._command is not None:
            self._ended_by = _BY_END
            self._command.killed(payload[1], self._sent)

    def _start(self, start: bytes) -> None:
        if self._command is not None:
            raise Broken("a second START")
        words_count = int.from_bytes(start[25:27], "little")
        strings = start[29:].split(b"\0")
        self.lease = int.from_bytes(start[:4], "little") / 1000
        try:
            self._command = Command(strings[words_count].decode())
        except ValueError as error:
            self._say(FAILED, _INVALID, str(error).encode())
            self.is_over = True
            return
        self._say(STARTED, 77, b"\1")
        if self._early_signal != _NO_SIGNAL:
            self._command.killed(self._early_signal, 0)

    def _stdin(self, offset: int, size: int) -> None:
        if offset > self._taken:
            raise Broken(f"stdin's byte {offset} follows byte {self._taken}")
        self._taken = max(self._taken, offset + size)
        self._say(TAKEN, self._taken, b"\0")

    def _done(self) -> None:
        if not self._exit_said:
            raise Broken("DONE before the command's end")
        self.is_over = True

    def _write(self) -> None:
        """What there is room for."""
        command = self._command
        if command is None or not self.is_connected or self.is_over or self._exit_said:
            return
        limit = self._acked + WINDOW
        while self._sent < limit and (piece := command.read(self._sent)):
            piece = piece[: limit - self._sent]
            self._say(OUT, self._sent, piece)
            self._sent += len(piece)
        if command.exit is not None and self._sent == command.size:
            lengths = command.size.to_bytes(8, "little") + bytes(8)
            self._say(EXIT, 0, bytes((*command.exit, 0, self._ended_by)) + lengths)
            self._exit_said = True

    def _say(self, kind: int, number: int, payload: bytes = b"") -> None:
        head = bytes((kind,)) + len(payload).to_bytes(3, "little") + self._epoch.to_bytes(4, "little")
        self._said.append(head + number.to_bytes(8, "little") + payload)
