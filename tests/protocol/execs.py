"""An exec as a client of this layer has it. Owns: a small synchronous loop around stream and frames."""

from __future__ import annotations

import os
import select

from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.asks import exec_in_pod
from mpirt.kubeapi.request.execs import ExecApi
from mpirt.kubeapi.request.websocket import Closed, FrameReader, Message, Ping, Pong, binary
from tests.apiserver.channel import V4

Event = Message | Ping | Pong | Closed
PATIENCE = 20.0


class Exec:
    """One exec of a shell command in the pod w-0."""

    def __init__(self, api: ExecApi, command: str, *, protocol: str = V4) -> None:
        ask = exec_in_pod("ml", "w-0", container="worker", command=["/bin/sh", "-c", command])
        self._deadline = Deadline(PATIENCE)
        upgraded = api.open_exec(ask, [protocol], self._deadline)
        self.stream = upgraded.stream
        self._reader = FrameReader()
        self._events: list[Event] = list(self._reader.feed(upgraded.leftover))
        self._ended = False

    def send(self, channel: int, data: bytes) -> None:
        self.raw(binary(bytes([channel]) + data, os.urandom(4)))

    def raw(self, data: bytes) -> None:
        self.stream.write(data)

    def next(self) -> Event | None:
        """The next event; None at the end of the connection."""
        while not self._events and not self._ended:
            data = self.stream.read()
            if data:
                self._events += self._reader.feed(data)
            elif data is not None:
                self._ended = True
            else:
                poll = select.poll()
                poll.register(*self.stream.to_poll)
                assert poll.poll(self._deadline.left() * 1000), "nothing comes any more"
                self.stream.flush()
        return self._events.pop(0) if self._events else None

    def message(self) -> tuple[int, bytes]:
        """The next message that isn't empty: channel and bytes."""
        while True:
            event = self.next()
            assert isinstance(event, Message), event
            if len(event.data) > 1:
                return event.data[0], event.data[1:]

    def everything(self) -> tuple[dict[int, bytes], Closed | None]:
        """What each channel says until the end, and the close frame if there is one."""
        said: dict[int, bytes] = {}
        while (event := self.next()) is not None:
            if isinstance(event, Closed):
                return said, event
            if isinstance(event, Message) and event.data:
                said[event.data[0]] = said.get(event.data[0], b"") + event.data[1:]
        return said, None

    def close(self) -> None:
        self.stream.close()
