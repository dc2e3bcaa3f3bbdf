"""
What takes many seconds: a connection on which nothing comes any more, output that nobody reads.

These run from the first test of this folder on; here, behind the others, it is asked what came of them.
"""

from __future__ import annotations

import pytest

from tests.apiserver.channel import STDOUT
from tests.apiserver.faults import Bare, Silence
from tests.apiserver.peer import Peer
from tests.apiserver.server import ApiServer
from tests.apiserver.shell import Cut, End, Shell
from tests.protocol.rsh.cases import CameOf, Case, Tell

HOLDS = "printf out; echo ran >> {witness}; sleep 600"


def opened(player: Peer | Shell) -> Tell:
    return lambda server: server.always("exec", player)


def at_first(player: Shell) -> Tell:
    return lambda server: server.on("exec", player)


def once(player: Shell, *, v5: bool = False) -> Tell:
    """The first exec is this; no other is answered."""

    def tell(server: ApiServer) -> None:
        if v5:
            server.protocols = ("v5.channel.k8s.io",)
            server.on("exec", Bare(403))
        server.on("exec", player)
        server.always("exec", Silence())

    return tell


def with_silent_pods(tell: Tell) -> Tell:
    def both(server: ApiServer) -> None:
        for operation in ("list", "get", "watch"):
            server.always(operation, Silence())
        tell(server)

    return both


HALF_OPEN = Shell(cut=Cut(b"out", End.HANG, STDOUT, after=True))
# fmt: off
SILENCES = [
    Case("half-open", once(HALF_OPEN), 249,
         ("node node-1 of pod w-0 has not answered for", "while the API server does"), b"out", runs=None,
         execs=None, command=HOLDS, slow=True),
    Case("half-open on v5", once(HALF_OPEN, v5=True), 249, ("node node-1 of pod w-0 has not answered for",),
         b"out", runs=None, execs=None, command=HOLDS, slow=True),
    Case("half-open and no word about pods", with_silent_pods(once(HALF_OPEN)), 250,
         ("the connection to pod w-0 was lost", "did not come back within the lease of 20 s"), b"out", runs=None,
         execs=None, command=HOLDS, lease="20", slow=True),
    Case("half-open once", at_first(Shell(cut=Cut(b"out", End.HANG, STDOUT))), 3, output=b"out", runs=1, execs=2,
         command="echo ran >> {witness}; printf out; exit 3", slow=True),
]
UNREAD = Case(
    "output that nobody reads", opened(Shell()), 128 + 15, runs=None,
    command="exec yes", pause=1.0, terminate=True, slow=True,
)
# fmt: on


@pytest.mark.parametrize("case", SILENCES, ids=str)
def test_it_ends_all_the_same(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    said = outcome.ended.line if case.says else outcome.ended.errors
    assert [part for part in case.says if part not in said] == []
    assert (outcome.ended.code, outcome.ended.output) == (case.code, case.output)
    assert bool(said) == bool(case.says)
    assert case.execs in (None, len(outcome.execs))
    assert case.runs in (None, outcome.runs)


@pytest.mark.parametrize("case", [UNREAD], ids=str)
def test_output_that_nobody_reads_keeps_no_agent_that_is_told_to_end(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert (outcome.ended.code, outcome.ended.errors) == (128 + 15, "")
