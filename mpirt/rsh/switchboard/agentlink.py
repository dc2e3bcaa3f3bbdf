"""
One agent: its socket, and the streams of its command.

Owns: the connection to it from WELCOME to its end. What the agent says goes to the session; what the session wants
written waits here for the agent. Never waits itself.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from typing import TYPE_CHECKING

from mpirt.errors import PeerError
from mpirt.rsh.protocol.framing import frame
from mpirt.rsh.session import events
from mpirt.rsh.session.task import Record
from mpirt.rsh.switchboard import frames
from mpirt.rsh.switchboard.frames import SIGNALS, Handover, Kind
from mpirt.rsh.switchboard.outbox import Outbox
from mpirt.rsh.switchboard.sessionio import SessionIO
from mpirt.rsh.switchboard.sockets import pid_of_peer
from mpirt.rsh.watches.loop import FOR_EVER, Waits

if TYPE_CHECKING:
    # It imports this module.
    from mpirt.rsh.switchboard.board import Switchboard

_READ = 128 * 1024
# ROOM is said for every so many bytes, where the agent has some left.
_WORTH_TELLING = 64 * 1024
_HUP = 1


class AgentLink:
    """An agent: a port, and where the stdin, stdout and stderr of a command are."""

    def __init__(self, connection: socket.socket, board: Switchboard) -> None:
        connection.settimeout(0)
        self.is_gone = False
        self._socket, self._board = connection, board
        self._loop, self._budget = board.loop, board.budget
        self._frames = frames.reader()
        self._outbox = Outbox()
        self._running: SessionIO | None = None
        self._record: Record | None = None
        self.broken = {1: 0, 2: 0}
        """The errno for which a stream can't be written any more; 0 while it can."""
        self._code: int | None = None
        # stdin: what has come and waits for the session, and how much was allowed.
        self._held = bytearray()
        self._ended_stdin = self._is_at_end = self._feeding = False
        self._received = self._room_told = self._taken_told = 0
        self._counted = 0
        """How many bytes of its output the budget has counted."""
        self._has_handed_over = self._is_viewer = self._is_owed = False
        self._outbox.say(frames.welcome(os.getpid()))
        self._loop.add(self, self._act, group=self)
        self._send()

    # The port

    def waits(self) -> Waits:
        return self._socket.fileno(), select.POLLIN | (select.POLLOUT if self._outbox.unsent else 0), FOR_EVER

    def _act(self) -> None:
        self._send()
        self._read()

    # Frames for it

    def go_direct(self, why: str) -> None:
        """Have it start a switchboard of its own."""
        self._say(frame(Kind.DIRECT, why.encode(errors="replace")[: frames.LARGEST]))

    def follow_its_parent(self) -> None:
        """Have it take the end of the process that started it for a HUP."""
        self._say(frame(Kind.FOLLOW))

    def finish(self, code: int) -> None:
        """The last word."""
        self._running = self._code = None
        self._say(frames.finish(code))

    def end(self, code: int) -> None:
        """The last word, once everything is written."""
        self._running, self._code = None, code
        self._send()
        if not self.waiting:
            self.finish(code)

    def answer(self, kind: Kind, document: bytes) -> None:
        """Send STATUS, DISCOVERED or SETTLED to the client that has asked."""
        self._is_owed = False
        self._say(frames.answer(kind, document))

    # Its state

    @property
    def pid(self) -> int | None:
        """The agent's, as far as it can be seen from here."""
        return None if self.is_gone else pid_of_peer(self._socket) or None

    @property
    def received(self) -> tuple[int, int]:
        """How many bytes of stdout and stderr have come for it."""
        return self._outbox.taken

    @property
    def given(self) -> int:
        """How many bytes of stdin the session has had from it."""
        return self._received - len(self._held)

    @property
    def unwritten(self) -> int:
        """How many bytes its readers have not taken yet."""
        return 0 if self.is_gone else self._outbox.unwritten

    @property
    def buffered(self) -> int:
        """How many bytes of the command wait in this process, for the readers or for the session."""
        return (0 if self.is_gone else self._outbox.held) + len(self._held)

    # The client of a session

    def take_up(self, handover: Handover, *, is_resumed: bool) -> None:
        """Begin to count where the agent is."""
        self._outbox = Outbox(handover.output)
        self._received = handover.stdin_at + len(handover.stdin)
        self._taken_told = handover.stdin_at
        self._room_told = self._received
        self._is_at_end = handover.stdin_ended
        if not is_resumed:
            self._held += handover.stdin
            self._ended_stdin = handover.stdin_ended

    def serve(self, running: SessionIO | None) -> None:
        """Carry the streams of this session from now on; None: of none."""
        self._running = running

    def write(self, stream: int, data: bytes) -> None:
        if not self.is_gone:
            self._outbox.write(stream, data)

    def say(self, line: str) -> None:
        if not self.is_gone:
            self._outbox.line(line)
            self._send()

    @property
    def waiting(self) -> int:
        """How many bytes of one stream have not been written yet, at most."""
        return 0 if self.is_gone else self._outbox.waiting

    @property
    def is_crowded(self) -> bool:
        """Whether other commands want the room that the output takes."""
        return not (self.is_gone or self._budget.may_be_read(self, self._may_be_read_again))

    @property
    def done(self) -> tuple[int, int]:
        """How much of the command's stdout and stderr has been written, or dropped for want of a reader."""
        return self._outbox.done

    def keep(self, record: Record | None) -> None:
        """Have the agent store it, and confirm that by the event Kept."""
        self._record = record
        if self.is_gone and self._running is not None:
            # No agent will come back for it: the keeper need not wait.
            self._running.hear(events.Kept(record))
            return
        self._outbox.keep(record)
        self._send()

    def settle(self, stdin_room: int, stdin_taken: int) -> None:
        """Send what is queued; so much of stdin may be read, so much is not needed any more."""
        self._feed()
        if not self.is_gone:
            self._tell_of_stdin(stdin_room, stdin_taken)
            self._send()

    def _tell_of_stdin(self, room: int, taken: int) -> None:
        # At once: the agent may have no room left for more.
        if taken > self._taken_told:
            self._taken_told = taken
            self._outbox.say(frames.offset(Kind.TAKEN, taken))
        if self._held:
            return
        allowed = min(self._received + room, self._taken_told + frames.STDIN_KEPT)
        if allowed - self._room_told >= _WORTH_TELLING or (allowed > self._room_told == self._received):
            self._room_told = allowed
            self._outbox.say(frames.offset(Kind.ROOM, allowed))

    def read_no_more(self) -> None:
        """Nothing wants stdin any more."""
        self._held.clear()

    # Frames from it

    def _read(self) -> None:
        if self.is_gone:
            return
        try:
            data = self._socket.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        try:
            for found in self._frames.feed(data):
                if not self.is_gone:
                    self._take_frame(Kind(found.kind), found.payload)
        except PeerError:
            self._lose()
        self._feed()

    def _take_frame(self, kind: Kind, payload: bytes) -> None:
        if self._is_question(kind):
            self._is_owed = True
            self._board.asked(self, kind, payload)
        else:
            self._take(kind, payload)

    def _is_question(self, kind: Kind) -> bool:
        """Whether it asks something. Who does so does nothing else, and takes each answer first."""
        is_question = kind in (Kind.STATUS_REQUEST, Kind.DISCOVER_REQUEST, Kind.SETTLED_REQUEST)
        is_early = self._has_handed_over or self._is_owed or self._outbox.unsent
        if is_early if is_question else self._is_viewer:
            raise PeerError(f"{kind.name} out of turn from an agent")
        self._is_viewer = is_question
        return is_question

    def _take(self, kind: Kind, payload: bytes) -> None:
        """What it says, in the order of docs/switchboard.md. Raises PeerError."""
        if (kind is Kind.HANDOVER) == self._has_handed_over:
            raise PeerError(f"{kind.name} out of turn from an agent")
        match kind:
            case Kind.HANDOVER:
                self._has_handed_over = True
                self._board.handed_over(self, frames.read_handover(payload))
            case Kind.BROKEN:
                stream, error = frames.read_broken(payload)
                self.broken[stream] = error or errno.EPIPE
            case Kind.WRITTEN:
                self._take_written(payload)
            case Kind.STDIN:
                self._take_stdin(payload)
        if self._running is not None:
            self._tell(self._running, kind, payload)
        else:
            self._take_without_session(kind, payload)

    def _take_without_session(self, kind: Kind, payload: bytes) -> None:
        if self._code is None and kind is Kind.SIGNAL:
            self._board.signalled_early(self, frames.read_signal(payload))
        elif self._code is not None and kind in (Kind.SIGNAL, Kind.BROKEN):
            # The line has no reader any more, or a signal says not to wait for one.
            self.finish(self._code)

    def _take_written(self, payload: bytes) -> None:
        self._outbox.written(*frames.read_written(payload))
        self._send()
        if self._code is not None and not self.waiting:
            self.finish(self._code)

    def _take_stdin(self, data: bytes) -> None:
        self._received += len(data)
        if self._is_at_end or self._received > self._room_told:
            raise PeerError("an agent gives more of stdin than there is room for")
        self._held += data
        self._is_at_end = self._ended_stdin = not data

    def _tell(self, running: SessionIO, kind: Kind, payload: bytes) -> None:
        if kind is Kind.STDIN:
            # It is passed on together with what else has arrived, or before a frame of another type.
            return
        self._feed()
        match kind:
            case Kind.WRITTEN | Kind.BROKEN:
                running.output_moved()
            case Kind.STDIN_BROKEN:
                running.hear(events.StdinBroken(os.strerror(frames.read_errno(payload))))
            case Kind.SIGNAL:
                number = frames.read_signal(payload)
                if number in SIGNALS:
                    running.signalled(SIGNALS[number], number)

    def _feed(self) -> None:
        """Give the session of stdin what it has room for."""
        running = self._running
        if running is None or self._feeding:
            return
        self._feeding = True
        while self._held and (room := running.session.phase.stdin_room):
            # The view has to end before anything is taken away.
            with memoryview(self._held) as whole, whole[:room] as part:
                piece = bytes(part)
            del self._held[:room]
            running.hear(events.StdinRead(piece))
        if self._ended_stdin and not self._held and running.session.phase.stdin_room:
            self._ended_stdin = False
            running.hear(events.StdinRead(b""))
        self._feeding = False

    # The socket

    def _say(self, frame: bytes) -> None:
        if not self.is_gone:
            self._outbox.say(frame)
            self._send()

    def _send(self) -> None:
        unsent = self._outbox.unsent
        try:
            while unsent and not self.is_gone:
                # The view has to end before anything is taken away.
                with memoryview(unsent) as whole, whole[:_READ] as part:
                    count = self._socket.send(part)
                if self._outbox.sent(count) and self._running is not None:
                    self._running.hear(events.Kept(self._record))
        except BlockingIOError:
            pass
        except OSError:
            self._lose()
        if self.is_gone:
            return
        if (held := self._outbox.held) != self._counted:
            self._counted = held
            self._budget.holds(self, held)
        if unsent:
            self._loop.touch(self)

    def _may_be_read_again(self) -> None:
        if self._running is not None:
            self._running.output_moved()

    def _lose(self) -> None:
        """It has ended, whatever it was told to do."""
        if self.is_gone:
            return
        self.is_gone = True
        self._loop.drop(self)
        self._budget.forget(self)
        self._socket.close()
        if self._running is not None:
            self._running.signalled(SIGNALS[_HUP], _HUP)
        self._board.has_ended(self)
