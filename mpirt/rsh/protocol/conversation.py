"""
What agent and keeper have said to each other about one command, by numbers.

Owns: what was sent and not yet acknowledged, and what was received: so that after any number of broken connections
each byte and each control has arrived once and in order. Bytes out, facts in; no I/O, no clock. It outlives
connections; `connect` begins a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpirt.errors import PeerError
from mpirt.kubeapi.request.channels import LARGEST_MESSAGE, STDERR, STDOUT, Output
from mpirt.rsh.protocol import keeperframes as frames
from mpirt.rsh.protocol.framing import HEADER, Frame
from mpirt.rsh.protocol.keeperframes import Kind
from mpirt.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# How much of stdin may be under way: what the keeper has room for.
STDIN_WINDOW = 1024 * 1024
# A frame with so much of it is one message on the exec's channel, whose number takes a byte.
STDIN_PIECE = LARGEST_MESSAGE - 1 - HEADER
# How much output of each stream a keeper may send beyond what it knows to be written: what it has room for.
OUTPUT_WINDOW = 2 * 1024 * 1024
# Each word to it is a message that wakes everything on the
# way, as a piece of output does: less often would stall it, more often costs as much as the output itself.
_ACK_EVERY = 512 * 1024
_STREAMS: Mapping[int, int] = {Kind.OUT: STDOUT, Kind.ERR: STDERR}
# Connections have 32 bits for their number; one process makes no more than this leaves room for.
_EPOCH_BITS = 16


class Attached(Value):
    """The keeper has taken this connection for its own."""


class Started(Value):
    """The command has been started; whether the session outlives this connection."""

    can_attach: bool


class Ended(Value):
    """The command has ended, and all of its output is here."""

    code: int
    by: frames.EndedBy
    left_open: bool


class Fenced(Value):
    """A later launcher of the job has ended the command."""


class NotStartable(Value):
    """The command can't be started."""

    why: str


class Used(Value):
    """What the command's processes use, as far as the keeper knows."""

    usage: frames.Usage | None


Fact = Output | Attached | Started | Ended | Fenced | NotStartable | Used


class Conversation:
    """One command's, over one connection after the other."""

    def __init__(self) -> None:
        self._epoch = 0
        self._is_resumed = False
        self._is_connected = False
        self._reader = frames.reader()
        self._received = {STDOUT: 0, STDERR: 0}
        self._written = (0, 0)
        self._acked = (0, 0)
        self._end = b""
        self._controls: list[bytes] = []
        self._controls_done = 0
        self._stdin = bytearray()
        self._taken = 0
        self._stdin_ended = False
        self._stdin_closed = False
        self._ended = False

    def resume(
        self, generation: int, received: tuple[int, int], stdin_at: int, stdin: bytes, *, stdin_ended: bool
    ) -> None:
        """
        Go on where another process has stopped, before the first connection: the `generation`th that does so.

        Its connections had lower numbers. The controls that it gave have to be given again, in their order.
        """
        self._epoch = generation << _EPOCH_BITS
        self._is_resumed = True
        self._received = {STDOUT: received[0], STDERR: received[1]}
        self._written = received
        self._taken, self._stdin, self._stdin_ended = stdin_at, bytearray(stdin), stdin_ended

    # What we have to say

    @property
    def stdin_taken(self) -> int:
        """How many bytes of stdin the keeper has taken."""
        return self._taken

    @property
    def stdin_room(self) -> int:
        """How much of our own stdin may be read now."""
        if self._stdin_ended or self._stdin_closed:
            return 0
        return STDIN_WINDOW - len(self._stdin)

    def connect(self) -> bytes:
        """
        The first words on a new connection: what the keeper may not have had yet is said again, at once.

        It ignores what it has had, so there is no need to wait for its answer. Output that waits for our reader it
        sends once more: if we said that we have it, it would make room for as much again, at each connection.
        """
        self._epoch += 1
        self._is_connected = True
        self._reader = frames.reader()
        self._acked = self._written
        said = [self._frame(Kind.ATTACH, 0, frames.lengths(*self._written))]
        said += [
            self._frame(Kind.CONTROL, number, control)
            for number, control in enumerate(self._controls, self._controls_done + 1)
        ]
        if self._end:
            said.append(self._frame(Kind.CONTROL, 0, self._end))
        said += self._stdin_frames(self._taken, bytes(self._stdin))
        if self._stdin_ended:
            said.append(self._frame(Kind.STDIN_END, self._taken + len(self._stdin)))
        return b"".join(said)

    def disconnect(self) -> None:
        """The connection is lost: what is to be said from now on waits for the next."""
        self._is_connected = False

    def control(self, *controls: bytes) -> bytes:
        """Say that something is to be done, once."""
        number = self._controls_done + len(self._controls)
        self._controls += controls
        if not self._is_connected:
            return b""
        return b"".join(
            self._frame(Kind.CONTROL, number + place, control) for place, control in enumerate(controls, 1)
        )

    def end(self, control: bytes) -> bytes:
        """
        Say that the command is to end, for a reason of our own.

        It has no number: another process that goes on with the command has its own reasons, and gives all signals
        again by the numbers that they had.
        """
        self._end = self._end or control
        return self._frame(Kind.CONTROL, 0, control) if self._is_connected else b""

    def stdin(self, data: bytes) -> bytes:
        """Some of stdin, no more than there is room for; nothing is its end."""
        if len(data) > self.stdin_room:
            raise ValueError(f"there is room for {self.stdin_room} bytes of stdin, not {len(data)}")
        offset = self._taken + len(self._stdin)
        self._stdin += data
        self._stdin_ended = not data
        if not self._is_connected:
            return b""
        return b"".join(self._stdin_frames(offset, data)) if data else self._frame(Kind.STDIN_END, offset)

    def written(self, stdout: int, stderr: int) -> bytes:
        """So much output has been dealt with by now, in all."""
        # The next process begins with what its agent has, of which it hears later how much is written.
        before_stdout, before_stderr = self._written
        self._written = max(before_stdout, stdout), max(before_stderr, stderr)
        if not self._is_connected or sum(self._written) - sum(self._acked) < _ACK_EVERY:
            return b""
        self._acked = self._written
        return self._frame(Kind.ACK, 0, frames.lengths(*self._written))

    def beat(self) -> bytes:
        """Ask for a sign of life, and give one."""
        return self._frame(Kind.BEAT) if self._is_connected else b""

    def ask_usage(self) -> bytes:
        """Ask what the command's processes use."""
        return self._frame(Kind.USAGE) if self._is_connected else b""

    def done(self) -> bytes:
        """The end of the command has been taken note of."""
        return self._frame(Kind.DONE) if self._is_connected else b""

    # What the keeper has to say

    def receive(self, data: bytes) -> Iterator[Fact]:
        """
        What follows from the keeper's bytes, in order. Raises PeerError, after what stands before the offence.

        Frames of output that follow each other are one fact: they cost as much.
        """
        stream = 0
        pieces: list[bytes] = []
        offence: PeerError | None = None
        try:
            for found in self._frames(data):
                before, stream = stream, _STREAMS.get(found.kind, 0)
                if any(pieces) and stream != before:
                    yield Output(before, b"".join(pieces))
                    pieces = []
                if stream:
                    pieces.append(self._fresh(stream, found))
                else:
                    yield from self._take(found)
        except PeerError as error:
            offence = error
        if any(pieces):
            yield Output(stream, b"".join(pieces))
        if offence is not None:
            raise offence

    def _frames(self, data: bytes) -> Iterator[Frame]:
        for found in self._reader.feed(data):
            if found.epoch != self._epoch:
                raise PeerError(f"the keeper speaks of connection {found.epoch}, this is {self._epoch}")
            yield found

    def _take(self, found: Frame) -> Iterator[Fact]:
        match found.kind:
            case Kind.ATTACHED:
                controls, taken = frames.read_attached(found)
                self._forget_controls(controls)
                self._forget_stdin(taken)
                yield Attached()
            case Kind.STARTED:
                yield Started(frames.read_flag(found))
            case Kind.CONTROLLED:
                self._forget_controls(found.number)
            case Kind.TAKEN:
                self._stdin_closed = frames.read_flag(found)
                self._forget_stdin(found.number)
            case Kind.EXIT:
                yield from self._exit(frames.read_exit(found))
            case Kind.FAILED | Kind.FENCED:
                why = found.payload.decode(errors="replace")
                yield NotStartable(why) if found.kind == Kind.FAILED else Fenced()
            case Kind.USED:
                yield Used(frames.read_usage(found))
            case _:
                # A sign of life, as every frame is.
                pass

    def _stdin_frames(self, offset: int, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), STDIN_PIECE):
            yield self._frame(Kind.STDIN, offset + at, data[at : at + STDIN_PIECE])

    def _fresh(self, stream: int, found: Frame) -> bytes:
        """What of a frame of output did not come earlier."""
        have = self._received[stream]
        if found.number > have:
            raise PeerError(f"the keeper skips output: byte {found.number} follows byte {have}")
        fresh = found.payload[have - found.number :]
        beyond = have + len(fresh) - self._acked[stream == STDERR]
        if beyond > OUTPUT_WINDOW:
            raise PeerError(f"the keeper sends {beyond} bytes of output beyond what was acknowledged, "
                            f"{OUTPUT_WINDOW} is the most")  # fmt: skip
        self._received[stream] += len(fresh)
        return fresh

    def _exit(self, end: frames.Exit) -> Iterator[Fact]:
        received = self._received[STDOUT], self._received[STDERR]
        if received != (end.stdout, end.stderr):
            raise PeerError(f"the keeper says that the command wrote {end.stdout} and {end.stderr} bytes, "
                            f"{received[0]} and {received[1]} came")  # fmt: skip
        if not self._ended:
            self._ended = True
            yield Ended(end.code, end.by, end.left_open)

    def _forget_controls(self, done: int) -> None:
        fresh = done - self._controls_done
        if self._is_resumed and fresh > len(self._controls):
            # An agent remembers no more than 64 signals.
            self._controls_done += fresh - len(self._controls)
            fresh = len(self._controls)
        self._is_resumed = False
        if not 0 <= fresh <= len(self._controls):
            raise PeerError(f"the keeper has done control {done} of {self._controls_done + len(self._controls)}")
        del self._controls[:fresh]
        self._controls_done = done

    def _forget_stdin(self, taken: int) -> None:
        fresh = taken - self._taken
        if not 0 <= fresh <= len(self._stdin):
            raise PeerError(f"the keeper has taken {taken} bytes of {self._taken + len(self._stdin)} of stdin")
        del self._stdin[:fresh]
        self._taken = taken

    def _frame(self, kind: Kind, number: int = 0, payload: bytes = b"") -> bytes:
        return frames.frame(kind, self._epoch, number, payload)
