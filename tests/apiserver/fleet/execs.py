"""
An exec in a pod of the fleet: WebSocket frames, the shell's first line, and then a keeper's bridge.

Owns: the way from one to the next, and the keepers of all pods. Nothing here runs: a pod's shell knows the one
line that mpirt sends to find a keeper, and nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.apiserver import frames
from tests.apiserver.channel import NORMAL, STATUS, STDIN, STDOUT, as_go_writes_it, exit_status
from tests.apiserver.fleet.connection import Connection
from tests.apiserver.fleet.keeper import PROTOCOL, Broken, Keeper
from tests.apiserver.frames import ClientFrames, frame, message

_CALL = re.compile(rb'exec "\$mpirt_x" (bridge|attach) ([A-Za-z0-9]{8,32});')
_BEGAN = 4000
_KILLED = 137
_COMMAND_NOT_FOUND = 127
# A runtime carries no more in one message.
_LARGEST_MESSAGE = 32 * 1024


@dataclass(slots=True)
class Keepers:
    """Those of all pods, and the leases of those without a connection."""

    clock: Callable[[], float]
    complaints: list[str]
    found: dict[tuple[str, str], Keeper] = field(default_factory=dict)
    execs: set[Exec] = field(default_factory=set)
    connected: dict[tuple[str, str], Exec] = field(default_factory=dict)
    heard: Counter[str] = field(default_factory=Counter)
    """What came from clients: pings and messages."""
    _alone: dict[tuple[str, str], float] = field(default_factory=dict)

    def enter(self, pod: str, nonce: str, *, attach: bool) -> Keeper | None:
        """The keeper of a session, a new one unless it is to be attached to; None where there is none."""
        key = pod, nonce
        if key in self.connected:
            self.connected[key].superseded()
        if not attach:
            if key in self.found:
                self.complaints.append(f"a second session of {nonce} in {pod}")
            self.found[key] = Keeper()
        self._alone.pop(key, None)
        keeper = self.found.get(key)
        if keeper is not None:
            keeper.connect()
        return keeper

    def left(self, key: tuple[str, str]) -> None:
        """Its connection has ended: it waits for another one as long as its lease."""
        del self.connected[key]
        keeper = self.found.get(key)
        if keeper is None:
            return
        keeper.is_connected = False
        if keeper.is_over:
            del self.found[key]
        else:
            self._alone[key] = self.clock() + keeper.lease

    def tick(self) -> None:
        """End those whose lease is over."""
        now = self.clock()
        for key in [key for key, until in self._alone.items() if until <= now]:
            del self._alone[key]
            self.found.pop(key, None)

    def pod_has_gone(self, pod: str) -> None:
        """Everything in it is killed."""
        for key in [key for key in self.found if key[0] == pod]:
            del self.found[key]
            self._alone.pop(key, None)
        for each in [each for each in self.execs if each.key[0] == pod]:
            each.finish(_KILLED)


class Exec:
    """One exec's WebSocket."""

    __slots__ = ("_connection", "_frames", "_keeper", "_keepers", "_line", "key")

    def __init__(self, connection: Connection, keepers: Keepers, pod: str) -> None:
        self._connection, self._keepers = connection, keepers
        self._frames = ClientFrames()
        self._line = b""
        self._keeper: Keeper | None = None
        self.key = pod, ""
        keepers.execs.add(self)

    def receive(self, data: bytes) -> None:
        """The client's bytes."""
        for found in self._frames.feed(data):
            if self._connection.is_closed:
                break
            self._keepers.heard["pings" if found.opcode == frames.PING else "messages"] += 1
            if found.opcode == frames.PING:
                self._connection.send(frame(frames.PONG, found.payload))
            elif found.opcode == frames.CLOSE:
                self._connection.close()
            elif found.is_data and found.payload[:1] == bytes((STDIN,)) and len(found.payload) > 1:
                self._stdin(found.payload[1:])
        self._keepers.complaints += self._frames.complaints
        self._frames.complaints.clear()

    def ended(self) -> None:
        """The connection has."""
        self._keepers.execs.discard(self)
        if self._keeper is not None:
            self._keeper = None
            self._keepers.left(self.key)

    def superseded(self) -> None:
        """Another connection has attached to its keeper, which closes this one."""
        del self._keepers.connected[self.key]
        self._keeper = None
        self.finish(0)

    def finish(self, code: int) -> None:
        """Its process has ended."""
        status = message(STATUS, as_go_writes_it(exit_status(code)))
        self._connection.send(status + frame(frames.CLOSE, NORMAL.to_bytes(2)))
        self._connection.close()

    def _stdin(self, data: bytes) -> None:
        if self._keeper is not None:
            self._carry(data)
            return
        line, end, rest = (self._line + data).partition(b"\n")
        self._line = b"" if end else line
        if end:
            self._enter(line, rest)

    def _enter(self, line: bytes, rest: bytes) -> None:
        """The shell evaluates its first line."""
        called = _CALL.search(line)
        if called is None:
            self._keepers.complaints.append(f"a shell in the fleet can't evaluate {line[:100]!r}")
            self.finish(_COMMAND_NOT_FOUND)
            return
        nonce, pod = called[2].decode(), self.key[0]
        keeper = self._keepers.enter(pod, nonce, attach=called[1] == b"attach")
        if keeper is None:
            self._say(b"\x01mpirt-%s GONE %d\n" % (called[2], _BEGAN))
            self.finish(0)
            return
        self.key, self._keeper = (pod, nonce), keeper
        self._keepers.connected[self.key] = self
        self._say(b"\x01mpirt-%s KEEPER %d %d\n" % (called[2], PROTOCOL, _BEGAN))
        if rest:
            self._carry(rest)

    def _carry(self, data: bytes) -> None:
        keeper = self._keeper
        assert keeper is not None
        try:
            said = b"".join(keeper.receive(data))
        except Broken as error:
            self._keepers.complaints.append(f"{self.key}: {error}")
            self.finish(0)
            return
        if said:
            self._say(said)
        if keeper.is_over:
            self.finish(0)

    def _say(self, data: bytes) -> None:
        most = _LARGEST_MESSAGE
        pieces = (data[at : at + most] for at in range(0, len(data), most))
        self._connection.send(b"".join(message(STDOUT, piece) for piece in pieces))
