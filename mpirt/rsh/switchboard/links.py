"""
What a session is connected by: its exec, and before that, for some host names, the look-up of its pod.

Owns: one WebSocket from its opening to its end, as frames on a TLS stream on one side and the session's events on
the other; the words for how it ended; what the end of a look-up is to a session. Nothing waits: the loop polls
as waits() says, and then calls step() or learn(). Must not know: what the messages mean.
"""

from __future__ import annotations

import os
import select
import time

from mpirt.errors import MpirtError
from mpirt.kubeapi.access.steps import Pending
from mpirt.kubeapi.request import websocket
from mpirt.kubeapi.request.channels import joined
from mpirt.kubeapi.request.execs import Upgraded
from mpirt.rsh.session import events
from mpirt.rsh.watches.loop import FOR_EVER, Waits

# How much to read before the rest of the loop gets its turn.
_READS_PER_STEP = 16
# Bytes that come in bulk are read this seldom, in seconds: to be woken for each record costs several times as much
# as the record.
_BULK, _BULK_PAUSE = 8 * 1024, 0.001


class ExecLink:
    """An open exec."""

    # fmt: off
    __slots__ = (
        "_early", "_more", "_pauses_until", "_reader", "_stream", "_unsendable", "has_ended", "listening",
        "notices_end",
    )
    # fmt: on

    def __init__(self, upgraded: Upgraded) -> None:
        self.listening = True
        """Whether to read what comes. What isn't read holds the sender up, on the server's side and ours."""
        self.notices_end = False
        """Whether to read on, listening or not, once the other side has closed it: what is here is all."""
        self.has_ended = False
        """Whether there is nothing to send or to read any more, so that it may be closed."""
        self._stream = upgraded.stream
        self._reader = websocket.FrameReader()
        self._early = upgraded.leftover
        self._more = bool(upgraded.leftover)
        self._pauses_until = 0.0
        self._unsendable = ""

    def waits(self) -> Waits:
        """At once where poll can't see what to do; for nothing where it would tell of a lost peer for ever."""
        if self.has_ended:
            return -1, 0, FOR_EVER
        fd, wants = self._stream.to_poll
        if self._unsendable:
            wants = select.POLLIN
        if not self.listening:
            wants = wants & ~select.POLLIN | (select.POLLRDHUP if self.notices_end else 0)
            return fd, wants, 0.0 if self._more and self.notices_end and self._unsendable else FOR_EVER
        if self._pauses_until:
            return fd, wants & ~select.POLLIN, max(0.0, self._pauses_until - time.monotonic())
        return fd, wants, 0.0 if self._more else FOR_EVER

    def send(self, message: bytes) -> None:
        """Queue a message, which flush() sends as one frame."""
        self._put(websocket.binary(message, os.urandom(4)))

    def flush(self) -> None:
        """Send what can be sent now. If that fails, step() reports the end of the connection."""
        if self.has_ended or self._unsendable:
            return
        try:
            self._stream.flush()
        except MpirtError as error:
            # Not the end yet: what the other side has still sent stands before it.
            self._unsendable = str(error)
            self._more = True

    def step(self) -> list[events.Event]:
        """Send and read what can be sent and read now; give what came of it."""
        found: list[events.Event] = []
        if self.has_ended:
            return found
        self.flush()
        if self.notices_end and not self.listening:
            self.listening = bool(self._unsendable) or _has_ended(self._stream.to_poll[0])
        if self.listening:
            try:
                self._read(found)
            except MpirtError as error:
                self._end(found, self._unsendable or str(error))
        return found

    def close(self) -> None:
        """Hang up: with a last frame if it can go at once, for it is not waited for."""
        self._say_farewell()
        self._stream.close()

    def _say_farewell(self) -> None:
        if not self.has_ended:
            self._write(websocket.close(websocket.NORMAL, os.urandom(4)))
            self.has_ended = True

    def _put(self, frame: bytes) -> None:
        if not self.has_ended and not self._unsendable:
            self._stream.put(frame)

    def _write(self, frame: bytes) -> None:
        self._put(frame)
        self.flush()

    def _read(self, found: list[events.Event]) -> None:
        pieces, self._early = [self._early], b""
        data: bytes | None = None
        self._more, self._pauses_until = True, 0.0
        try:
            for _ in range(_READS_PER_STEP):
                data = self._stream.read()
                if not data:
                    self._more = False
                    break
                pieces.append(data)
        finally:
            come = b"".join(pieces)
            self._take(come, found)
        if len(come) >= _BULK and not self._more:
            self._pauses_until = time.monotonic() + _BULK_PAUSE
        if data == b"":
            self._end(found, self._unsendable or "the API server closed the connection without a word")

    def _take(self, data: bytes, found: list[events.Event]) -> None:
        messages: list[bytes] = []
        how = ""
        try:
            for frame in self._reader.feed(data):
                match frame:
                    case websocket.Message(message):
                        messages.append(message)
                    case websocket.Ping(payload):
                        self._write(websocket.pong(payload, os.urandom(4)))
                    case websocket.Closed(code, reason):
                        said = " ".join(str(part) for part in (code, reason) if part)
                        how = f"the server closed it ({said or 'no reason given'})"
                        break
        finally:
            found += [events.Received(message) for message in joined(messages)]
        if how:
            self._end(found, how)

    def _end(self, found: list[events.Event], how: str) -> None:
        if not self.has_ended:
            # The loop lets go of the descriptor before it is closed.
            self._say_farewell()
            found.append(events.Closed(how))


def _has_ended(fd: int) -> bool:
    """Whether the other side has closed a connection, whatever is still to be read."""
    poll = select.poll()
    poll.register(fd, select.POLLRDHUP)
    return bool(poll.poll(0))


class PodLookup(Pending[str]):
    """One look-up, by steps that return the pod's name. The loop calls learn() until it returns an event."""

    __slots__ = ()

    def learn(self) -> events.PodFound | events.NotOpened | None:
        """Do what can be done without waiting; give the outcome once there is one."""
        try:
            return events.PodFound(self.result or "") if self.advance() else None
        except MpirtError as error:
            return events.NotOpened(error)
