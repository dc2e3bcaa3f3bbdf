"""
What may become of an exec that was opened, before the command is started and after.

Before GO a connection that ends, or says what it shouldn't, has started nothing. After it a keeper holds the
command: a connection that is lost costs nothing, and what breaks the protocol has its code and one line.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.apiserver.channel import STDOUT, SUCCESS, Channel, exit_status, internal_error
from tests.apiserver.frames import BINARY, PONG, frame, message
from tests.apiserver.peer import Peer
from tests.apiserver.shell import Cut, End, Shell
from tests.promises import promise
from tests.protocol.rsh.cases import CameOf, Case, Tell, always, lasting, once, with_v5_alone
from tests.protocol.rsh.peers import Keeper, ended, ends_with, greeted, out

NO_SHELL = internal_error('OCI runtime exec failed: exec: "/bin/sh": executable file not found in $PATH: unknown')
NOT_FOUND = internal_error('unable to upgrade connection: container not found ("worker")')
GARBAGE = b"\xff\xff\xff\xff"
ENDS = "echo ran >> {witness}; printf out; exit 3"
GONE = "the keeper of the command in pod w-0 is gone: something has killed it, or its lease was over"


def ends(*said: bytes, status: dict[str, object]) -> Tell:
    """A keeper that starts a command and says these frames; then the server's word."""

    def then(pod: Channel) -> None:
        pod.status(status)
        pod.close()

    return always(Peer(Keeper(*said, then=then)))


def status_first(status: object) -> Callable[[Channel], None]:
    def play(pod: Channel) -> None:
        pod.stdin_line()
        pod.status(json.dumps(status).encode())
        pod.close()

    return play


def another_nonce(pod: Channel) -> None:
    greeted(pod)
    pod.stdout(b"\x01mpirt-0123456789abcdef KEEPER 1 4000\n")
    pod.connection.hang()


def says(word: bytes) -> Callable[[Channel], None]:
    def play(pod: Channel) -> None:
        _, opening = greeted(pod)
        pod.stdout(opening + word + b"\n")
        pod.connection.hang()

    return play


def on_channel_9(pod: Channel) -> None:
    pod.raw(frame(BINARY, b"\x09what"))
    pod.stdout(out(b"out") + ended(3, stdout=3))
    pod.status(exit_status(3))
    pod.close()


def garbage_at_once(pod: Channel) -> None:
    pod.raw(message(STDOUT, out(b"out")) + GARBAGE)


def a_ping(pod: Channel) -> None:
    pod.ping(b"there?")
    while not (pongs := [found.payload for found in pod.received if found.opcode == PONG]):
        pod.drain()
    pod.stdout(out(pongs[0]) + ended(3, stdout=len(pongs[0])))
    pod.status(exit_status(3))
    pod.close()


def lost(name: str, end: End) -> Case:
    """The connection ends right before the command's output, which comes on another one."""
    player = Shell(cut=Cut(b"out", end, STDOUT))
    return Case(name, once(player), 3, output=b"out", execs=2, runs=1, command=ENDS)


# fmt: off
BEFORE_GO = [
    lasting("closed before an answer", always(Peer(ends_with(End.EOF))), 244,
            ("pod w-0 ended before its shell said a word", "closed the connection without a word")),
    lasting("close frame before an answer", always(Peer(ends_with(End.CLOSE))), 244,
            ("pod w-0 ended before its shell said a word", "the server closed it (1000)")),
    lasting("reset before an answer", always(Peer(ends_with(End.RESET))), 244, ("pod w-0", "said a word")),
    lasting("garbage before an answer", always(Peer(ends_with(End.GARBAGE))), 244,
            ("pod w-0", "invalid WebSocket frame header")),
    lasting("half-open before an answer", always(Peer(ends_with(End.HANG))), 244,
            ("no shell in pod w-0 answered",), execs=1),
    Case("no shell", always(Peer(status_first(NO_SHELL))), 252,
         ("pod w-0", "executable file not found", "mpirt needs a /bin/sh in the worker's image")),
    Case("127 before an answer", always(Peer(status_first(exit_status(127)))), 252, ("no shell", "pod w-0")),
    lasting("1 before an answer", always(Shell(sh="/bin/false")), 244,
            ("the shell in pod w-0 ended before it said a word (code 1)",)),
    lasting("success before an answer", always(Shell(sh="/bin/true")), 244, ("pod w-0", "said a word")),
    lasting("no container before an answer", always(Peer(status_first(NOT_FOUND))), 243,
            ("pod w-0", "container not found")),
    lasting("another session's answer", always(Peer(another_nonce)), 244,
            ("no shell in pod w-0 answered",), execs=1),
    Case("an answer that is none", always(Peer(says(b"START"))), 245, ("invalid answer from the shell",)),
    Case("a keeper that speaks other frames", always(Peer(says(b"KEEPER 2 4000"))), 245,
         ("invalid answer from the shell",)),
]

GOES = [
    Case("closed before an answer once", once(Peer(ends_with(End.EOF))), 0),
    Case("reset before an answer once", once(Peer(ends_with(End.RESET))), 0),
    Case("garbage before an answer once", once(Peer(ends_with(End.GARBAGE))), 0),
    Case("no container before an answer once", once(Peer(status_first(NOT_FOUND))), 0),
    Case("cut at the keeper's line once", once(Shell(cut=Cut(b"KEEPER", End.EOF, STDOUT))), 0),
    Case("reset at the keeper's line once", once(Shell(cut=Cut(b"KEEPER", End.RESET, STDOUT))), 0),
]

AFTER_GO = [
    # the connection ends while the keeper has more to say
    lost("a close frame", End.CLOSE),
    lost("no close frame", End.EOF),
    lost("a reset", End.RESET),
    lost("garbage", End.GARBAGE),
    # the keeper's session is gone then
    Case("a success without EXIT", ends(out(b"out"), status=dict(SUCCESS)), 251, (GONE,), b"out", execs=2),
    Case("a code without EXIT", ends(out(b"out"), status=dict(exit_status(137))), 137,
         ("something in pod w-0 ended the command from outside (code 137, signal 9)",), b"out", execs=2,
         slow=True),
    Case("a failure without EXIT", ends(out(b"out"), status=dict(internal_error("the node is gone"))), 251,
         (GONE,), b"out", execs=2),
    # its end
    Case("no status", always(Shell(status=b"")), 0, output=b"out", runs=1),
    Case("no status and no close frame", always(Shell(status=b"", end=End.EOF)), 0, output=b"out", runs=1),
    Case("no status and a reset", always(Shell(status=b"", end=End.RESET)), 0, output=b"out", runs=1),
    Case("no status and garbage", always(Shell(status=b"", end=End.GARBAGE)), 0, output=b"out", runs=1),
    Case("no status and no end", always(Shell(status=b"", end=End.HANG)), 0, output=b"out", runs=1),
    Case("a success that contradicts", always(Shell(status=SUCCESS)), 3, output=b"out", runs=1, command=ENDS),
    Case("a code that contradicts", always(Shell(status=exit_status(5))), 3, output=b"out", runs=1, command=ENDS),
    # what breaks the protocol
    Case("a frame that is none", always(Peer(Keeper(bytes(16)))), 245, ("invalid frame from the keeper",)),
    Case("lost output", always(Peer(Keeper(out(b"out"), ended(0, stdout=4)))), 245, ("4 and 0 bytes",), b"out"),
    Case("everything twice", always(Shell(repeat=True)), 245, ("invalid frame from the keeper",),
         runs=None),
    # not as it was, but not wrong
    Case("a channel that nobody has", always(Peer(Keeper(then=on_channel_9))), 3, output=b"out"),
    Case("byte by byte", always(Shell(split=1)), 0, output=b"out", runs=1),
    Case("in three bytes", always(Shell(split=3)), 0, output=b"out", runs=1),
    Case("in fragments", always(Shell(fragment=True)), 0, output=b"out", runs=1),
    Case("bytes in fragments", always(Shell(split=1, fragment=True)), 0, output=b"out", runs=1),
    Case("v5", with_v5_alone(always(Shell())), 0, output=b"out", runs=1, execs=2),
    Case("v5 byte by byte", with_v5_alone(always(Shell(split=1))), 0, output=b"out", runs=1, execs=2),
    Case("a server that pings", always(Peer(Keeper(then=a_ping))), 3, output=b"there?"),
]

# What stands before the offence in the same frame or record is not shown yet.
WITH_OUTPUT_BEFORE = [
    Case("garbage in the same breath", always(Peer(Keeper(then=garbage_at_once))), 251, (GONE,), b"out", execs=2),
    Case("a frame that is none in the same breath", always(Peer(Keeper(out(b"out") + bytes(16)))), 245,
         ("invalid frame from the keeper",), b"out"),
]

# fmt: on


@pytest.mark.parametrize("case", BEFORE_GO, ids=str)
def test_what_ends_before_go_has_started_nothing(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert [part for part in case.says if part not in outcome.ended.line] == [], outcome.ended.line
    assert (outcome.ended.code, outcome.ended.output, outcome.runs) == (case.code, b"", 0)
    assert case.execs in (None, len(outcome.execs))
    assert len(outcome.execs) < 10


@pytest.mark.parametrize("case", GOES, ids=str)
def test_what_ends_before_go_is_begun_again(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert (outcome.ended.code, outcome.ended.output, outcome.ended.errors) == (0, b"out", "")
    assert (len(outcome.execs), outcome.runs) == (2, 1)


@promise(
    "A violated protocol ends mpirt-rsh with a code of its own, and never starts a command again.",
    of="mpirt-rsh",
    no_cluster="a real API server keeps the protocol",
)
@pytest.mark.parametrize("case", AFTER_GO, ids=str)
def test_after_go_each_end_has_its_code_and_the_command_ran_once_at_most(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    outcome.check(case)
    assert outcome.runs <= 1


@pytest.mark.parametrize("case", WITH_OUTPUT_BEFORE, ids=str)
def test_what_came_before_the_offence_is_shown(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert [part for part in case.says if part not in outcome.ended.line] == []
    assert (outcome.ended.code, outcome.ended.output) == (case.code, case.output)
