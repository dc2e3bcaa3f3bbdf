"""
A session and a clock of its own, for tests that are sentences about it.

Owns: the shorthand for what shells and servers say.
"""

from __future__ import annotations

import json
from typing import Self

from mpirt.kubeapi.request.answers import Failure, ServerFailed
from mpirt.rsh.invocation.order import Order
from mpirt.rsh.pod.liveness import DEFAULT_PACE, Pace
from mpirt.rsh.protocol.entrance import Keepers
from mpirt.rsh.session import events
from mpirt.rsh.session.events import (
    Action,
    Event,
    Finish,
    Keep,
    Kept,
    Opened,
    Received,
    Send,
    Signalled,
    StdinRead,
    Tick,
)
from mpirt.rsh.session.session import Session
from mpirt.rsh.session.task import Grace, Holding, Record, Resumption, Task

NONCE = "cafe01"
# That of its first attempt.
FIRST = f"{NONCE}a1"
V4 = "v4.channel.k8s.io"
V5 = "v5.channel.k8s.io"


# An installation that has none to send: what the pod has counts.
HOLDING = Holding(Keepers({}))


def answer(text: str, *, stream: int = 2, nonce: str = FIRST) -> Received:
    """What a shell or a keeper says before there are frames, by default on stderr."""
    return Received(bytes([stream]) + f"\x01mpirt-{nonce} {text}\n".encode())


def no_keeper(arch: str = "none", *, attempt: int = 1) -> Received:
    """What a shell says that has looked for a keeper."""
    return answer(f"HELLO {arch}", nonce=f"{NONCE}a{attempt}")


KEEPER = answer("KEEPER 1 4000", stream=1)


def out(data: bytes) -> Received:
    return Received(b"\x01" + data)


def err(data: bytes) -> Received:
    return Received(b"\x02" + data)


SUCCESS = Received(b'\x03{"status":"Success"}')


def exit_status(code: int) -> Received:
    causes = [{"reason": "ExitCode", "message": str(code)}]
    body = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
    return Received(b"\x03" + json.dumps(body).encode())


def failure_status(message: str) -> Received:
    body = {"status": "Failure", "reason": "InternalError", "message": message}
    return Received(b"\x03" + json.dumps(body).encode())


TERM, INT, USR1, HUP = Signalled("TERM", 15), Signalled("INT", 2), Signalled("USR1", 10), Signalled("HUP", 1)
DIALING = ServerFailed("x", Failure(500, "", "error dialing backend: refused", None, is_status=True))
NOT_FOUND = ServerFailed("z", Failure(500, "", "container not found", None, is_status=True))
DEFAULT_GRACE = Grace()


class Run:
    """A session that is told what happens, and when."""

    def __init__(
        self,
        *,
        has_stdin: bool = False,
        seconds: float = 60.0,
        container: str = "",
        attempts: int = 0,
        holding: Holding = HOLDING,
        grace: Grace = DEFAULT_GRACE,
        pace: Pace = DEFAULT_PACE,
    ) -> None:
        task = Task(
            pod="w",
            order=Order(NONCE, b"true", has_stdin=has_stdin),
            container=container,
            connect_seconds=seconds,
            attempts=attempts,
            holding=holding,
            grace=grace,
            pace=pace,
        )
        self.now = 0.0
        self.task = task
        self.session = Session(task, now=0.0, jitter=lambda: 1.0)
        self.stdin = b""
        self.stdin_ended = False
        self.signals: list[tuple[str, int]] = []
        self.actions: list[Action] = []
        self.records: list[Record | None] = []
        self.keeps = True
        self.takeovers = 0

    def feed(self, *happened: Event) -> list[Action]:
        """The actions that these events, at this moment, lead to. Records are kept at once, and apart."""
        actions: list[Action] = []
        waiting = list(happened)
        while waiting:
            event = waiting.pop(0)
            self._note(event)
            found = self.session.receive(event, self.now)
            records = [action.record for action in found if isinstance(action, Keep)]
            waiting[:0] = [Kept(record) for record in records] if self.keeps else []
            self.records += records
            actions += [action for action in found if not isinstance(action, Keep)]
        self.actions += actions
        return actions

    def take_over(self, *, stdin_known: int | None = None) -> None:
        """
        The process is killed, and another one goes on, with what the agent has.

        `stdin_known`: how much of stdin the agent has heard to be taken; by default all that is.
        """
        at = self.session.phase.stdin_taken if stdin_known is None else stdin_known
        record = self.records[-1] if self.records else None
        resumption = None
        if record is not None:
            resumption = Resumption(
                record,
                generation=1 + self.takeovers,
                output=(len(self.written(1)), len(self.written(2))),
                stdin_at=at,
                stdin=self.stdin[at:],
                stdin_ended=self.stdin_ended,
                signals=tuple(self.signals),
            )
        self.takeovers += 1
        self.session = Session(self.task, now=self.now, jitter=lambda: 1.0, resumption=resumption)

    def _note(self, event: Event) -> None:
        match event:
            case StdinRead(data):
                self.stdin += data
                self.stdin_ended = not data
            case Signalled(name, number):
                self.signals.append((name, number))

    def after(self, seconds: float, *happened: Event) -> list[Action]:
        """Let time pass, with a tick whenever the session asks for one, and then feed the events."""
        end = self.now + seconds
        actions = []
        ticks = 0
        while (wake := self.session.wake) is not None and wake <= end:
            ticks += 1
            assert ticks < 20 * seconds + 50, f"it asks for a tick at {wake} again and again, and would spin"
            self.now = max(self.now, wake)
            actions += self.feed(Tick())
        self.now = end
        return actions + self.feed(*happened)

    def open(self, protocol: str = V4) -> Self:
        self.feed(Tick(), Opened(protocol))
        return self

    @property
    def finish(self) -> Finish | None:
        found = [action for action in self.actions if isinstance(action, Finish)]
        assert len(found) <= 1
        return found[0] if found else None

    @property
    def code(self) -> int | None:
        """The exit code; None while it goes on."""
        return None if self.finish is None else self.finish.code

    def sent(self) -> bytes:
        """All bytes that were sent."""
        return b"".join(action.message[1:] for action in self.actions if isinstance(action, Send))

    def written(self, stream: int) -> bytes:
        writes = [action for action in self.actions if isinstance(action, events.Write)]
        return b"".join(action.data for action in writes if action.stream == stream)

    def count(self, kind: type[Action]) -> int:
        return sum(isinstance(action, kind) for action in self.actions)
