"""
Every order in which the connections of one command can break before and after its start, searched exhaustively.

Owns: the world around a session: the agent that keeps records, the switchboards that are killed, the connections
that break, and a pod with keepers as docs/keeper.md has them. The session is the real one.
An action is one step of one part of the world; a state is all that can be seen from outside of the session.

What is sent before a connection breaks may come to the pod much later: such a connection is `late`. What never
comes is not carried in any state that follows. A keeper may end before START has come, whoever is connected.

`python -m tests.unit.rsh.startmodel --connections 3 --takeovers 1` searches further than the tests do.
"""

from __future__ import annotations

import argparse
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mpirt.rsh.invocation.order import Order
from mpirt.rsh.protocol.entrance import Keepers
from mpirt.rsh.session.events import Action, Closed, Dial, Event, HangUp, Keep, Kept, Opened, Send, Tick
from mpirt.rsh.session.machine import State
from mpirt.rsh.session.session import Session
from mpirt.rsh.session.task import Holding, Record, Resumption, Task
from tests.unit.rsh.keepers import ATTACH, ATTACHED, CONTROL, CONTROLLED, STARTED, frame, keeper_line, u64
from tests.unit.rsh.sessions import V4, out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BECOMES = re.compile(rb'exec "\$mpirt_x" (bridge|attach) (\w+);')
# The places for a session's folder, in their order.
PLACES = ("/dev/shm", "/tmp")


class Limits(NamedTuple):
    """How much may happen."""

    connections: int
    takeovers: int = 0


class Step(NamedTuple):
    """An action: what happens, and to which of several."""

    name: str
    number: int = -1


@dataclass(eq=False)
class Keeper:
    """A keeper in the pod, as far as it is about its start."""

    name: str
    place: str | None
    is_gone: bool = False
    epoch: int = 0
    controls: int = 0
    starts: int = 0
    connection: Connection | None = None

    def receive(self, data: bytes, connection: Connection) -> None:
        """One frame."""
        kind, epoch, number = data[0], int.from_bytes(data[4:8], "little"), int.from_bytes(data[8:16], "little")
        if kind == ATTACH:
            self._attach(connection, epoch)
        elif connection is self.connection and epoch == self.epoch and kind == CONTROL:
            self._control(number, data[16:17])

    def _attach(self, connection: Connection, epoch: int) -> None:
        if epoch <= self.epoch:
            connection.keeper = None
            return
        if self.connection is not None:
            self.connection.keeper = None
        self.connection, self.epoch = connection, epoch
        self._say(ATTACHED, self.controls, bytes([self.starts > 0]) + u64(0))
        if self.starts:
            self._say(STARTED, 77, bytes([self.place is not None]))

    def _control(self, number: int, kind: bytes) -> None:
        if number != self.controls + 1:
            return
        self.controls = number
        if kind == b"S":
            self.starts += 1
            self._say(STARTED, 77, bytes([self.place is not None]))
        self._say(CONTROLLED, number)

    def _say(self, kind: int, number: int, payload: bytes = b"") -> None:
        if self.connection is not None:
            self.connection.to_agent.append(frame(kind, self.epoch, number, payload))


@dataclass(eq=False)
class Connection:
    """One exec: what is under way on it, and what its process in the pod has become."""

    to_pod: deque[bytes] = field(default_factory=deque)
    to_agent: deque[bytes] = field(default_factory=deque)
    is_shell: bool = True
    keeper: Keeper | None = None


class World:
    """All of it, from the first dial on."""

    def __init__(self, limits: Limits, folder: Callable[[str], str]) -> None:
        """`folder` makes a folder's name of a nonce."""
        self._folder = folder
        self._left = limits
        self._now = 0.0
        self._takeovers = 0
        self._kept: Record | None = None
        self._underway: list[Record | None] = []
        self._dials = False
        self._open: Connection | None = None
        self._late: list[Connection] = []
        self._keepers: list[Keeper] = []
        self._single = {
            "open": self._opens,
            "keep": self._keeps,
            "cut": self._is_cut,
            "to pod": self._to_pod,
            "to agent": self._to_agent,
            "take over": self._take_over,
        }
        self._one_of = {"comes late": self._comes_late, "expires": self._expires}
        self._session = self._new_session(None)
        self._feed(Tick())

    @property
    def starts(self) -> int:
        """How often the command was started."""
        return sum(keeper.starts for keeper in self._keepers)

    def fingerprint(self) -> object:
        """What tells this state from others."""
        late = frozenset(map(_looks, self._late))
        keepers = frozenset(
            (one.name, one.place, one.epoch, one.controls, one.starts) for one in self._keepers if not one.is_gone
        )
        records = (self._kept, *self._underway)
        nonces = tuple(None if one is None else one.nonce for one in records)
        opened = None if self._open is None else _looks(self._open)
        return self._session.phase.state, self._left, nonces, self._dials, opened, late, keepers

    def steps(self) -> Iterator[Step]:
        """What may happen next."""
        opened = self._open
        single = (
            ("open", self._dials and self._left.connections),
            ("keep", self._underway),
            ("cut", opened),
            ("to pod", opened and opened.to_pod),
            ("to agent", opened and opened.to_agent),
            ("take over", self._left.takeovers),
        )
        yield from (Step(name) for name, may_be in single if may_be)
        for number in range(len(self._late)):
            yield Step("comes late", number)
        for number, keeper in enumerate(self._keepers):
            if not (keeper.is_gone or keeper.starts):
                yield Step("expires", number)

    def take(self, step: Step) -> None:
        """Let it happen."""
        if step.number >= 0:
            self._one_of[step.name](step.number)
        else:
            self._single[step.name]()

    # What happens

    def _opens(self) -> None:
        self._left = self._left._replace(connections=self._left.connections - 1)
        self._dials, self._open = False, Connection()
        self._feed(Opened(V4))

    def _keeps(self) -> None:
        self._kept = self._underway.pop(0)
        if not self._underway:
            self._feed(Kept(self._kept))

    def _is_cut(self) -> None:
        self._break()
        self._feed(Closed("reset"))

    def _to_pod(self) -> None:
        assert self._open is not None
        self._carry(self._open)

    def _to_agent(self) -> None:
        assert self._open is not None
        self._feed(out(self._open.to_agent.popleft()))

    def _comes_late(self, number: int) -> None:
        self._carry(self._late[number])
        if not self._late[number].to_pod:
            del self._late[number]

    def _expires(self, number: int) -> None:
        self._keepers[number].is_gone = True

    # The launcher's side

    def _new_session(self, resumption: Resumption | None) -> Session:
        order = Order(f"base{self._takeovers}", b"true")
        task = Task(pod="w", order=order, holding=Holding(Keepers({})), connect_seconds=1000.0)
        return Session(task, now=self._now, jitter=lambda: 1.0, resumption=resumption)

    def _take_over(self) -> None:
        """The switchboard is killed, and another one goes on with what the agent has."""
        self._break()
        self._left = self._left._replace(takeovers=self._left.takeovers - 1)
        self._takeovers += 1
        self._underway.clear()
        self._dials = False
        record = self._kept
        self._session = self._new_session(None if record is None else Resumption(record, self._takeovers))
        self._feed(Tick())

    def _feed(self, event: Event) -> None:
        self._do(self._session.receive(event, self._now))
        # Nothing but time lies between a loss and the next dial.
        while self._open is None and not self._dials and self._session.phase.state is not State.DONE:
            wake = self._session.wake
            assert wake is not None
            self._now = max(self._now, wake)
            self._do(self._session.receive(Tick(), self._now))

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Dial():
                    self._dials = True
                case Keep(record):
                    self._underway.append(record)
                case HangUp():
                    self._break()
                case Send(message) if self._open is not None:
                    self._open.to_pod += _pieces(message[1:])

    def _break(self) -> None:
        """Nothing more comes to the agent; what was sent may still come to the pod."""
        if self._open is not None:
            connection, self._open = self._open, None
            connection.to_agent.clear()
            if connection.to_pod:
                self._late.append(connection)

    # The pod

    def _carry(self, connection: Connection) -> None:
        data = connection.to_pod.popleft()
        if connection.is_shell:
            connection.is_shell = False
            self._become(data, connection)
        elif connection.keeper is not None and not connection.keeper.is_gone:
            connection.keeper.receive(data, connection)

    def _become(self, line: bytes, connection: Connection) -> None:
        found = _BECOMES.search(line)
        assert found is not None
        verb, nonce = found[1].decode(), found[2].decode()
        name = self._folder(nonce)
        there = {keeper.place: keeper for keeper in self._keepers if keeper.name == name and not keeper.is_gone}
        if verb == "bridge":
            place = next((place for place in PLACES if place not in there), None)
            connection.keeper = Keeper(name, place)
            self._keepers.append(connection.keeper)
        else:
            connection.keeper = next((there[place] for place in PLACES if place in there), None)
        word = "GONE 4000" if connection.keeper is None else "KEEPER 1 4000"
        connection.to_agent.append(keeper_line(word, nonce=nonce))


def _looks(connection: Connection) -> object:
    keeper = connection.keeper
    reached = None if keeper is None else (keeper.name, keeper.place, keeper.connection is connection)
    return tuple(connection.to_pod), tuple(connection.to_agent), connection.is_shell, reached


def _pieces(data: bytes) -> Iterator[bytes]:
    """A greeting as it is; frames one by one."""
    while data:
        size = 16 + int.from_bytes(data[1:4], "little") if data[0] < ord(" ") else len(data)
        yield data[:size]
        data = data[size:]


@dataclass(frozen=True)
class Found:
    """What a search has come to."""

    states: int
    with_a_start: int
    path: tuple[Step, ...] | None
    """The way to a state in which the command was started twice."""


def search(limits: Limits, *, folder: Callable[[str], str] = lambda nonce: nonce) -> Found:
    """Visit every state; stop at the first that must not be."""
    begin = World(limits, folder)
    seen = {begin.fingerprint()}
    started = 0
    waiting: deque[tuple[Step, ...]] = deque((step,) for step in begin.steps())
    while waiting:
        path = waiting.popleft()
        world = World(limits, folder)
        for step in path:
            world.take(step)
        if world.starts > 1:
            return Found(len(seen), started, path)
        state = world.fingerprint()
        if state not in seen:
            seen.add(state)
            started += world.starts
            waiting += ((*path, step) for step in world.steps())
    return Found(len(seen), started, None)


def main() -> None:
    """Say how many states there are, and how a command is started twice."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--connections", type=int, default=3)
    parser.add_argument("--takeovers", type=int, default=1)
    asked = parser.parse_args()
    found = search(Limits(asked.connections, asked.takeovers))
    print(f"{found.states} states, {found.with_a_start} with a command that was started")
    if found.path is not None:
        raise SystemExit(f"started twice: {', '.join(f'{step.name} {step.number}' for step in found.path)}")


if __name__ == "__main__":
    main()
