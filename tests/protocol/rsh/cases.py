"""
One server that is told something, one agent, and what came of it: many of them at once.

Owns: running the cases of all tests that were selected ahead of those tests, each against a server of its own.
An agent that has to wait for seconds costs nothing then but the longest of these waits.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.apiserver.certificates import Authority
from tests.apiserver.connection import Request
from tests.apiserver.faults import Fault
from tests.apiserver.peer import Peer
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.apiserver.shell import Shell
from tests.protocol.rsh.agent import PATIENCE, Ended, Ground
from tests.support.switchboards import SWITCHBOARD

Tell: TypeAlias = "Callable[[ApiServer], None]"
Answers: TypeAlias = "Fault | Peer | Shell"

# Nearly all of an agent's time is waiting; more at once would be late for their own timeouts.
_AT_ONCE = 6


@dataclass(frozen=True)
class Case:
    """What the server is told, what it is asked to run, and how that ends."""

    name: str
    tell: Tell
    code: int
    says: tuple[str, ...] = ()
    """Parts of the one line on stderr; none where it ends by itself."""
    output: bytes = b""
    execs: int | None = 1
    """How many execs were asked for; None where that is left to chance."""
    runs: int | None = 0
    """How many times the command ran, as far as that is certain."""
    command: str = "echo ran >> {witness}; printf out"
    seconds: str = "20"
    """How long it may take to start: far more than it takes, on a machine that has much else to do, too."""
    stdin: bytes = b""
    pause: float = 0.0
    """For how many seconds nobody reads its output."""
    act: Tell | None = None
    """What happens once its pod is watched and it has written something."""
    lease: str = "180"
    """For how many seconds its keeper holds it without a connection."""
    terminate: bool = False
    """Whether it gets SIGTERM then, of its output but a line read."""
    slow: bool = False
    """Whether it takes many seconds however it is run."""

    def __str__(self) -> str:
        return self.name


def lasting(name: str, tell: Tell, code: int, says: tuple[str, ...], *, execs: int | None = None) -> Case:
    """A case in which nothing is ever better: it ends with the time that it may take to start."""
    return Case(name, tell, code, says, execs=execs, seconds="4")


def always(answer: Answers) -> Tell:
    """Each exec is answered so."""
    return lambda server: server.always("exec", answer)


def once(answer: Answers) -> Tell:
    """The first exec is answered so."""
    return lambda server: server.on("exec", answer)


def with_v5_alone(tell: Tell) -> Tell:
    """The server speaks v5 only."""

    def both(server: ApiServer) -> None:
        server.protocols = ("v5.channel.k8s.io",)
        tell(server)

    return both


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    ended: Ended
    execs: list[Request]
    connections: int
    runs: int
    complaints: list[str]

    def check(self, case: Case) -> None:
        """Assert that it ended as the case says, with one line where that has something to say."""
        said = self.ended.line if case.says else self.ended.errors
        assert [part for part in case.says if part not in said] == []
        assert (self.ended.code, self.ended.output) == (case.code, case.output)
        assert bool(said) == bool(case.says)
        assert case.execs in (None, len(self.execs))
        assert case.runs in (None, self.runs)


CameOf: TypeAlias = "Callable[[Case], Outcome]"


class Cases:
    """The cases that run."""

    def __init__(self, cases: Iterable[Case], authority: Authority, folder: Path, board: Path) -> None:
        """`board`: the folder of their switchboard."""
        found = list(cases)
        self._quick = ThreadPoolExecutor(_AT_ONCE)
        self._slow = ThreadPoolExecutor(max(1, len(found)))
        self._outcomes: dict[Case, Future[Outcome]] = {}
        for number, case in enumerate(sorted(found, key=lambda each: not each.slow)):
            pool = self._slow if case.slow else self._quick
            self._outcomes[case] = pool.submit(_play, case, authority, folder / str(number), str(board))

    def outcome(self, case: Case) -> Outcome:
        """Wait until the case is over."""
        return self._outcomes[case].result()

    def stop(self) -> None:
        """Let those end that have begun."""
        for pool in (self._quick, self._slow):
            pool.shutdown(cancel_futures=True)


def _play(case: Case, authority: Authority, folder: Path, setting: str) -> Outcome:
    server = ApiServer(authority)
    server.world.put(pod("w-0"))
    server.start()
    ground = Ground(server, folder)
    try:
        case.tell(server)
        command = case.command.format(witness=ground.witness)
        source = subprocess.PIPE if case.stdin else subprocess.DEVNULL
        times = {"MPIRT_CONNECT_TIMEOUT": case.seconds, "MPIRT_LEASE": case.lease}
        agent = ground.start("w-0", command, stdin=source, env={**times, SWITCHBOARD: setting})
        agent.feed(case.stdin)
        if case.terminate:
            agent.line()
        threading.Event().wait(case.pause)
        if case.act is not None:
            server.wait_for("watch")
            agent.wait_for_output()
            case.act(server)
        if case.terminate:
            # Nobody reads its output while it ends, either.
            agent.process.terminate()
            agent.process.wait(PATIENCE)
        ended = agent.wait()
    finally:
        ground.clear()
        server.stop()
    return Outcome(ended, server.asked("exec"), server.connections, ground.runs, server.complaints)
