"""
A keeper as docs/keeper.md describes it, without processes: what it would answer to the agent's bytes.

Owns: a second implementation of the contract, for tests in which connections break anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Self

from mpirt.rsh.protocol.entrance import Keepers
from mpirt.rsh.session.events import Closed, Dial, Event, Opened, PodSeen, Send, Tick
from mpirt.rsh.session.task import Grace, Holding
from tests.unit.rsh import pods
from tests.unit.rsh.sessions import DEFAULT_GRACE, FIRST, V4, Run, out

ATTACH, CONTROL, STDIN, STDIN_END, ACK, DONE, BEAT, USAGE = 1, 2, 3, 4, 5, 6, 7, 9
ATTACHED, STARTED, TAKEN, CONTROLLED, OUT, ERR, EXIT, ANSWER, FAILED, USED = 33, 34, 35, 36, 37, 38, 39, 40, 41, 42
FENCED = 43
LEASE, END, SIGNAL = 1, 2, 3
WINDOW = 1024 * 1024
# What the greeting has the shell become.
_BECOMES = re.compile(rb'exec "\$mpirt_x" (bridge|attach) (\w+);')


def frame(kind: int, epoch: int, number: int = 0, payload: bytes = b"") -> bytes:
    head = bytes([kind]) + len(payload).to_bytes(3, "little") + epoch.to_bytes(4, "little")
    return head + number.to_bytes(8, "little") + payload


def u64(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "little") for number in numbers)


@dataclass
class Keeper:
    """One command, which writes and ends when it is told to."""

    controls: list[bytes] = field(default_factory=list)
    own_ends: list[bytes] = field(default_factory=list)
    """Those of the session's own reasons, which have no number and come again on each connection."""
    stdin: bytes = b""
    stdin_ended: bool = False
    starts: int = 0
    has_failed: bool = False
    is_done: bool = False
    says: bytes = b""
    """What goes to the agent, and has not been taken."""
    can_attach: bool = True
    fails: bytes = b""
    """Why it can't start the command, if it can't."""
    usage: tuple[int, int, int] | None = (0, 0, 0)
    """What it answers to USAGE; None is nothing."""
    usage_asked: int = 0
    _unread: bytes = b""
    _epoch: int = 0
    _stdout: bytes = b""
    _stderr: bytes = b""
    _acked: list[int] = field(default_factory=lambda: [0, 0])
    _sent: list[int] = field(default_factory=lambda: [0, 0])
    _exit: bytes | None = None
    _exit_said: bool = False
    _connected: bool = False

    @property
    def is_started(self) -> bool:
        return self.starts > 0

    def writes(self, stdout: bytes = b"", stderr: bytes = b"") -> None:
        """The command writes."""
        self._stdout += stdout
        self._stderr += stderr
        self._pump()

    def ends(self, code: int, *, signal: bool = False, left_open: bool = False, by: int = 0) -> None:
        """The command ends."""
        lengths = u64(len(self._stdout), len(self._stderr))
        self._exit = bytes([signal, code, left_open, by]) + lengths
        self._pump()

    def disconnect(self) -> None:
        """The connection breaks: what was on its way to us is lost."""
        self._connected, self._unread, self.says = False, b"", b""

    def take(self) -> bytes:
        """What it says by now."""
        said, self.says = self.says, b""
        return said

    def receive(self, data: bytes) -> None:
        """The agent's bytes, cut anywhere."""
        self._unread += data
        while len(self._unread) >= 16:
            size = int.from_bytes(self._unread[1:4], "little")
            if len(self._unread) < 16 + size:
                return
            kind, epoch = self._unread[0], int.from_bytes(self._unread[4:8], "little")
            number, payload = int.from_bytes(self._unread[8:16], "little"), self._unread[16 : 16 + size]
            self._unread = self._unread[16 + size :]
            assert (kind == ATTACH) != self._connected, "ATTACH comes first, and once"
            assert epoch > self._epoch if kind == ATTACH else epoch == self._epoch
            self._take(kind, epoch, number, payload)
        self._pump()

    def _take(self, kind: int, epoch: int, number: int, payload: bytes) -> None:  # noqa: C901  a table
        match kind:
            case 1:
                self._epoch, self._connected, self._exit_said = epoch, True, False
                self._acknowledged(payload, [len(self._stdout), len(self._stderr)])
                self._sent = list(self._acked)
                self._say(ATTACHED, len(self.controls), bytes([self.is_started]) + u64(len(self.stdin)))
                if self.is_started or self.has_failed:
                    self._say_started()
            case 2:
                self._control(number, payload)
            case 3:
                have = len(self.stdin)
                assert number <= have, "stdin must not be skipped"
                self.stdin += payload[have - number :]
                self._say(TAKEN, len(self.stdin), b"\0")
            case 4:
                assert number == len(self.stdin)
                self.stdin_ended = True
            case 5:
                self._acknowledged(payload, self._sent)
            case 6:
                self.is_done = True
            case 7:
                self._say(ANSWER, number)
            case 9:
                self._use(number)

    def _acknowledged(self, payload: bytes, most: list[int]) -> None:
        """So much need not be kept: there is room for as much again."""
        acked = [int.from_bytes(payload[:8], "little"), int.from_bytes(payload[8:], "little")]
        assert all(old <= new <= there for old, new, there in zip(self._acked, acked, most, strict=True))
        self._acked = acked

    def is_fenced(self) -> None:
        """A later launcher of the job has ended the command."""
        self._say(FENCED, 0)

    def _control(self, number: int, payload: bytes) -> None:
        done = len(self.controls)
        if number == 0:
            assert payload[:1] == b"E"
            self.own_ends.append(payload)
            return
        assert number <= done + 1, "a control must not be skipped"
        if number == done + 1:
            self.controls.append(payload)
            if payload[:1] == b"S":
                self.starts += not self.fails
                self.has_failed = bool(self.fails)
                self._say_started()
            self._say(CONTROLLED, number)

    def _say_started(self) -> None:
        if self.has_failed:
            self._say(FAILED, 2, self.fails)
        else:
            self._say(STARTED, 77, bytes([self.can_attach]))

    def _use(self, number: int) -> None:
        self.usage_asked += 1
        if self.usage is not None:
            cpu, memory, processes = self.usage
            self._say(USED, number, u64(cpu, memory) + processes.to_bytes(4, "little"))

    def _pump(self) -> None:
        if not self._connected or not self.is_started:
            return
        for place, (kind, data) in enumerate(((OUT, self._stdout), (ERR, self._stderr))):
            limit = min(len(data), self._acked[place] + WINDOW)
            while self._sent[place] < limit:
                piece = data[self._sent[place] : min(limit, self._sent[place] + 32768)]
                self._say(kind, self._sent[place], piece)
                self._sent[place] += len(piece)
        if self._exit is not None and self._sent == [len(self._stdout), len(self._stderr)]:
            if not self._exit_said:
                self._say(EXIT, 0, self._exit)
            self._exit_said = True

    def _say(self, kind: int, number: int = 0, payload: bytes = b"") -> None:
        self.says += frame(kind, self._epoch, number, payload)


class HeldRun(Run):
    """
    A session and the keepers that it finds, with a connection between them that may break anywhere.

    `keeper` is the one of the last attempt; all that were made stay, each to be found by its nonce alone.
    """

    def __init__(self, *, has_stdin: bool = False, grace: Grace = DEFAULT_GRACE, **settings: object) -> None:
        holding = Holding(Keepers({}), **settings)  # type: ignore[arg-type]
        super().__init__(has_stdin=has_stdin, holding=holding, grace=grace)
        self.keeper = Keeper()
        self.keepers: dict[bytes, Keeper] = {}
        self.is_open = False
        self.is_gone = False
        self.container_start = 4000
        self._greeted = False
        self._told = 0

    def connect(self, *, breaks_after: int | None = None) -> None:
        """The dial that was asked for succeeds, and the shell there becomes the keeper's bridge."""
        self.keeper.disconnect()
        self.is_open, self._greeted = True, False
        self.feed(Opened(V4))
        self.carry(breaks_after=breaks_after)

    def begin(self) -> Self:
        """A session with its keeper, its command started."""
        self.feed(Tick())
        self.connect()
        return self

    @classmethod
    def lost(cls, **settings: object) -> Self:
        """A session whose command runs in a healthy pod, and whose connection is lost."""
        run = cls(**settings).begin()  # type: ignore[arg-type]
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        return run

    def meets(self, *happened: Event) -> None:
        """These events, and what both say about them."""
        self.feed(*happened)
        self.carry()

    def ends(self, code: int, *, signal: bool = False, by: int = 0) -> None:
        """The command ends, and its connection a moment later."""
        self.keeper.ends(code, signal=signal, by=by)
        self.carry()
        self.after(1.0)

    def carry(self, *, breaks_after: int | None = None) -> None:
        """
        Carry what both say, at most so many bytes each way, until neither says anything more.

        The greeting counts for nothing: it comes whole or, with 0, not at all.
        """
        left = 10**9 if breaks_after is None else breaks_after
        while self.is_open:
            heard = self._unheard()
            if heard and left and not self._greeted:
                line, _, heard = heard.partition(b"\n")
                self._greeted = True
                self._become(line)
                heard += self._unheard()
            heard = heard[:left]
            if heard:
                self.keeper.receive(heard)
            said = self.keeper.take()[:left] if self._greeted else b""
            for at in range(0, len(said), 20000):
                self.feed(out(said[at : at + 20000]))
            left -= max(len(heard), len(said))
            if left <= 0 or not (heard or said):
                break
        if breaks_after is not None:
            self.cut()

    def cut(self, how: str = "reset") -> None:
        """The connection ends."""
        self._unheard()
        if self.is_open:
            self.is_open = False
            self.keeper.disconnect()
            self.feed(Closed(how))

    def reconnect(self, *, breaks_after: int | None = None) -> None:
        """Wait for the next dial, and let it succeed."""
        self.cut()
        self.until_dialled()
        self.connect(breaks_after=breaks_after)

    def is_killed(self, *, stdin_known: int | None = None) -> None:
        """The process is killed with its connection, and another one goes on."""
        self._unheard()
        self.is_open = False
        self.keeper.disconnect()
        self.take_over(stdin_known=stdin_known)

    def finds_nobody(self, *, container_start: int = 4000) -> None:
        """Wait for the next dial: in the container that started then there is no such session."""
        self.is_gone, self.container_start = True, container_start
        self.until_dialled()
        self.connect()

    def until_dialled(self, *happened: Event) -> None:
        """Let time pass until a dial is asked for, and feed the events. A connection that there was has ended."""
        dialled = self.count(Dial)
        while self.finish is None and self.count(Dial) == dialled:
            wake = self.session.wake
            assert wake is not None
            self.after(max(wake - self.now, 0.001))
        self.feed(*happened)

    def _unheard(self) -> bytes:
        fresh, self._told = self.actions[self._told :], len(self.actions)
        return b"".join(action.message[1:] for action in fresh if isinstance(action, Send))

    @property
    def starts(self) -> int:
        """How many commands were started in the pod."""
        return sum(keeper.starts for keeper in self.keepers.values())

    def _become(self, line: bytes) -> None:
        """The shell becomes the bridge of a keeper that it makes, or one to a keeper that there is."""
        found = _BECOMES.search(line)
        assert found is not None
        verb, nonce = found.groups()
        if verb == b"bridge":
            assert nonce not in self.keepers, "an attempt can't be taken for another one"
            if self.keepers:
                self.keeper = Keeper(can_attach=self.keeper.can_attach, usage=self.keeper.usage)
            self.keepers[nonce] = self.keeper
        is_there = not self.is_gone and nonce in self.keepers
        word = f"{'KEEPER 1' if is_there else 'GONE'} {self.container_start}"
        self.feed(out(keeper_line(word, nonce=nonce.decode())))


def keeper_line(word: str = "KEEPER 1 4000", *, nonce: str = FIRST) -> bytes:
    return f"\x01mpirt-{nonce} {word}\n".encode()
