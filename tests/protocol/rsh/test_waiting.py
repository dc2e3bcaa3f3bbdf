"""
What takes many seconds: a connection on which nothing comes any more, output that nobody reads.

These run from the first test of this folder on; here, behind the others, it is asked what came of them.
"""

from __future__ import annotations

import os

import pytest

from tests.apiserver.channel import STDOUT, SUCCESS, Channel
from tests.apiserver.faults import Silence
from tests.apiserver.frames import PONG
from tests.apiserver.peer import Peer
from tests.apiserver.server import ApiServer
from tests.apiserver.shell import Cut, End, Shell
from tests.protocol.rsh.cases import CameOf, Case, Tell
from tests.protocol.rsh.peers import Wrapper

HOLDS = "printf out; echo ran >> {witness}; sleep 600"
PIECE = 16 * 1024
# A pipe's 64 KiB and the 256 KiB that may wait for it.
READ = 20
NOISE = os.urandom((READ + 4) * PIECE)
# The first ping is due after 4 s, on a connection that was reset.
LATE = 5.0


def opened(player: Peer | Shell) -> Tell:
    return lambda server: server.always("exec", player)


def with_v5_alone(tell: Tell) -> Tell:
    def both(server: ApiServer) -> None:
        server.protocols = ("v5.channel.k8s.io",)
        tell(server)

    return both


def with_silent_pods(tell: Tell) -> Tell:
    def both(server: ApiServer) -> None:
        for operation in ("list", "get", "watch"):
            server.always(operation, Silence())
        tell(server)

    return both


def says_all_and_leaves(pod: Channel, opening: bytes) -> None:
    """With the client's stdin unread, which makes the end of the connection a reset."""
    for number, start in enumerate(range(0, len(NOISE), PIECE)):
        pod.stdout(NOISE[start : start + PIECE])
        # Each piece is read until it reads no more; the rest, which its kernel holds, is not.
        pod.ping()
        while number < READ and sum(found.opcode == PONG for found in pod.received) <= number:
            pod.drain()
    pod.stdout(opening + b"END\n")
    pod.stderr(opening + b"EXIT 0\n")
    pod.status(SUCCESS)
    pod.close()


# fmt: off
SILENCES = [
    Case("half-open", opened(Shell(cut=Cut(b"out", End.HANG, STDOUT, after=True))), 249,
         ("node node-1 of pod w-0 has not answered for", "while the API server does"), b"out", runs=None,
         command=HOLDS, slow=True),
    Case("half-open on v5", with_v5_alone(opened(Shell(cut=Cut(b"out", End.HANG, STDOUT, after=True)))), 249,
         ("node node-1 of pod w-0 has not answered for",), b"out", runs=None, execs=2, command=HOLDS, slow=True),
    Case("half-open and no word about pods", with_silent_pods(opened(Shell(cut=Cut(b"START", End.HANG)))), 250,
         ("the connection to pod w-0 is dead for", 'could not list pods in namespace "ml": no answer'), runs=None,
         command="sleep 600", slow=True),
    Case("pings that nobody answers", opened(Shell(answers_pings=False)), 249, ("node node-1 of pod w-0",), b"out",
         runs=1, command="echo ran >> {witness}; printf out; exec sleep 600", slow=True),
]
UNREAD = Case(
    "output that nobody reads", opened(Shell()), 128 + 15, runs=None,
    command="yes", pause=1.0, terminate=True, slow=True,
)
OUTPUT_BEHIND_A_FAILED_WRITE = Case(
    "output that is read when a write of ours has failed",
    opened(Peer(Wrapper(b"%START raw guarded own\n", then=says_all_and_leaves))), 0,
    output=NOISE, stdin=b"never read", pause=LATE, slow=True,
)
# fmt: on


@pytest.mark.parametrize("case", SILENCES, ids=str)
def test_it_ends_all_the_same(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    said = outcome.ended.line if case.says else outcome.ended.errors
    assert [part for part in case.says if part not in said] == []
    assert (outcome.ended.code, outcome.ended.output) == (case.code, case.output)
    assert bool(said) == bool(case.says)
    assert len(outcome.execs) == case.execs
    assert case.runs in (None, outcome.runs)


@pytest.mark.parametrize("case", [OUTPUT_BEHIND_A_FAILED_WRITE], ids=str)
def test_what_came_before_the_end_is_all_there(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert (outcome.ended.code, outcome.ended.errors) == (0, "")
    assert outcome.ended.output == NOISE


@pytest.mark.parametrize("case", [UNREAD], ids=str)
def test_output_that_nobody_reads_keeps_no_agent_that_is_told_to_end(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert (outcome.ended.code, outcome.ended.errors) == (128 + 15, "")
