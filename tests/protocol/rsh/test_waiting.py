"""
What takes many seconds: a connection on which nothing comes any more, output that nobody reads.

These run from the first test of this folder on; here, behind the others, it is asked what came of them.
"""

from __future__ import annotations

import pytest

from tests.apiserver.channel import STDOUT
from tests.apiserver.faults import Bare, Silence
from tests.apiserver.server import ApiServer
from tests.apiserver.shell import Cut, End, Shell
from tests.protocol.rsh.cases import CameOf, Case, Tell, always, once

HOLDS = "printf out; echo ran >> {witness}; sleep 600"


def only_once(player: Shell, *, v5: bool = False) -> Tell:
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
    Case("half-open", only_once(HALF_OPEN), 249,
         ("node node-1 of pod w-0 has not answered for", "while the API server does"), b"out", runs=None,
         execs=None, command=HOLDS, slow=True),
    Case("half-open on v5", only_once(HALF_OPEN, v5=True), 249, ("node node-1 of pod w-0 has not answered for",),
         b"out", runs=None, execs=None, command=HOLDS, slow=True),
    Case("half-open and no word about pods", with_silent_pods(only_once(HALF_OPEN)), 250,
         ("the connection to pod w-0 was lost", "did not come back within the lease of 20 s"), b"out", runs=None,
         execs=None, command=HOLDS, lease="20", slow=True),
    Case("half-open once", once(Shell(cut=Cut(b"out", End.HANG, STDOUT))), 3, output=b"out", runs=1, execs=2,
         command="echo ran >> {witness}; printf out; exit 3", slow=True),
]
UNREAD = Case(
    "output that nobody reads", always(Shell()), 128 + 15, runs=None,
    command="exec yes", pause=1.0, terminate=True, slow=True,
)
# fmt: on


@pytest.mark.parametrize("case", SILENCES, ids=str)
def test_a_silent_connection_ends_all_the_same(case: Case, came_of: CameOf) -> None:
    came_of(case).check(case)


@pytest.mark.parametrize("case", [UNREAD], ids=str)
def test_output_that_nobody_reads_keeps_no_agent_that_is_told_to_end(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert (outcome.ended.code, outcome.ended.errors) == (128 + 15, "")
