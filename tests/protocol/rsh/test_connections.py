"""
What may become of an exec that was opened, before the command is started and after.

Before GO a connection that ends, or says what it shouldn't, has started nothing. After it, each end has its code
and one line, what was put out before is all there, and nothing is dialled again.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.apiserver.channel import STDOUT, SUCCESS, Channel, exit_status, internal_error
from tests.apiserver.frames import BINARY, PONG, frame, message
from tests.apiserver.peer import Peer
from tests.apiserver.server import ApiServer
from tests.apiserver.shell import Cut, End, Shell
from tests.promises import promise
from tests.protocol.rsh.cases import CameOf, Case, Tell, lasting
from tests.protocol.rsh.peers import START, Wrapper, ends_with, nonce

NO_SHELL = internal_error('OCI runtime exec failed: exec: "/bin/sh": executable file not found in $PATH: unknown')
NOT_FOUND = internal_error('unable to upgrade connection: container not found ("worker")')
GARBAGE = b"\xff\xff\xff\xff"
HOLDS = "printf out; echo ran >> {witness}; sleep 600"


def opened(player: Peer | Shell) -> Tell:
    return lambda server: server.always("exec", player)


def at_first(player: Peer | Shell) -> Tell:
    return lambda server: server.on("exec", player)


def ends(*lines: bytes, output: bytes = b"", status: dict[str, object] | None = None) -> Tell:
    """A wrapper that starts a command, says these lines on stderr and this on stdout; then the server's word."""

    def then(pod: Channel, opening: bytes) -> None:
        if output:
            pod.stdout(output.replace(b"%", opening))
        if status is not None:
            pod.status(status)
        pod.close()

    return opened(Peer(Wrapper(b"%" + START + b"\n", *lines, then=then)))


def hello_late(pod: Channel) -> None:
    nonce(pod)
    pod.connection.hang()


def status_first(status: object) -> Callable[[Channel], None]:
    def play(pod: Channel) -> None:
        pod.stdin_line()
        pod.status(json.dumps(status).encode())
        pod.close()

    return play


def another_nonce(pod: Channel) -> None:
    nonce(pod)
    pod.stderr(b"\x01mpirt-0123456789abcdef HELLO\n")
    pod.connection.hang()


def starts_before_go(pod: Channel) -> None:
    opening = b"\x01mpirt-" + nonce(pod) + b" "
    pod.stderr(opening + START + b"\n")
    pod.connection.hang()


def on_channel_9(pod: Channel, opening: bytes) -> None:
    pod.raw(frame(BINARY, b"\x09what"))
    pod.stdout(b"out" + opening + b"END\n")
    pod.stderr(opening + b"EXIT 3\n")
    pod.status(exit_status(3))
    pod.close()


def garbage_at_once(pod: Channel, opening: bytes) -> None:
    pod.raw(message(STDOUT, b"out") + GARBAGE)


def a_bad_marker(pod: Channel, opening: bytes) -> None:
    pod.stdout(b"out" + opening + b"WHAT\n")


def a_ping(pod: Channel, opening: bytes) -> None:
    pod.ping(b"there?")
    while not (pongs := [found.payload for found in pod.received if found.opcode == PONG]):
        pod.drain()
    pod.stdout(pongs[0] + opening + b"END\n")
    pod.status(exit_status(3))
    pod.close()


def half_a_status(pod: Channel, opening: bytes) -> None:
    pod.stdout(b"out")
    pod.status(b'{"status":"Suc')
    pod.close()


def with_v5_alone(tell: Tell) -> Tell:
    def both(server: ApiServer) -> None:
        server.protocols = ("v5.channel.k8s.io",)
        tell(server)

    return both


# fmt: off
BEFORE_GO = [
    lasting("closed before HELLO", opened(Peer(ends_with(End.EOF))), 244,
            ("pod w-0 ended before its shell said a word", "closed the connection without a word")),
    lasting("close frame before HELLO", opened(Peer(ends_with(End.CLOSE))), 244,
            ("pod w-0 ended before its shell said a word", "the server closed it (1000)")),
    lasting("reset before HELLO", opened(Peer(ends_with(End.RESET))), 244, ("pod w-0", "said a word")),
    lasting("garbage before HELLO", opened(Peer(ends_with(End.GARBAGE))), 244,
            ("pod w-0", "invalid WebSocket frame header")),
    lasting("half-open before HELLO", opened(Peer(ends_with(End.HANG))), 244,
            ("no shell in pod w-0 answered",), execs=1),
    Case("no shell before HELLO", opened(Peer(status_first(NO_SHELL))), 252,
         ("pod w-0", "executable file not found", "mpirt needs a /bin/sh in the worker's image")),
    Case("127 before HELLO", opened(Peer(status_first(exit_status(127)))), 252, ("no shell", "pod w-0")),
    lasting("1 before HELLO", opened(Shell(sh="/bin/false")), 244,
            ("the shell in pod w-0 ended before it said a word (code 1)",)),
    lasting("success before HELLO", opened(Shell(sh="/bin/true")), 244, ("pod w-0", "said a word")),
    lasting("no container before HELLO", opened(Peer(status_first(NOT_FOUND))), 243,
            ("pod w-0", "container not found")),
    lasting("another session's HELLO", opened(Peer(another_nonce)), 244,
            ("no shell in pod w-0 answered",), execs=1),
    Case("START before GO", opened(Peer(starts_before_go)), 245, ("pod w-0",)),
]

GOES = [
    Case("closed before HELLO once", at_first(Peer(ends_with(End.EOF))), 0),
    Case("reset before HELLO once", at_first(Peer(ends_with(End.RESET))), 0),
    Case("garbage before HELLO once", at_first(Peer(ends_with(End.GARBAGE))), 0),
    Case("no container before HELLO once", at_first(Peer(status_first(NOT_FOUND))), 0),
    Case("cut at HELLO once", at_first(Shell(cut=Cut(b"HELLO", End.EOF))), 0),
    Case("reset at HELLO once", at_first(Shell(cut=Cut(b"HELLO", End.RESET))), 0),
]

AFTER_GO = [
    # the command runs when it happens
    Case("a close frame", opened(Shell(cut=Cut(b"out", End.CLOSE, STDOUT, after=True))), 250,
         ("the connection to pod w-0 was lost", "the server closed it (1000)"), b"out", runs=None, command=HOLDS),
    Case("no close frame", opened(Shell(cut=Cut(b"out", End.EOF, STDOUT, after=True))), 250,
         ("the connection to pod w-0 was lost", "without a word"), b"out", runs=None, command=HOLDS),
    Case("a reset", opened(Shell(cut=Cut(b"out", End.RESET, STDOUT, after=True))), 250,
         ("the connection to pod w-0 was lost",), b"out", runs=None, command=HOLDS),
    Case("garbage", opened(Shell(cut=Cut(b"out", End.GARBAGE, STDOUT, after=True))), 250,
         ("the connection to pod w-0 was lost", "invalid WebSocket frame header"), b"out", runs=None,
         command=HOLDS),
    Case("a channel that nobody has", opened(Peer(Wrapper(b"%" + START + b"\n", then=on_channel_9))), 3,
         output=b"out"),
    Case("cut at START", opened(Shell(cut=Cut(b"START", End.EOF))), 250,
         ("the connection to pod w-0 was lost",), command="sleep 600"),
    Case("half a status", opened(Peer(Wrapper(b"%" + START + b"\n", then=half_a_status))), 250,
         ("pod w-0", "in the middle of a status (14 bytes)"), b"out"),
    # its end
    Case("no status", opened(Shell(status=b"")), 0, output=b"out", runs=1),
    Case("no status and no close frame", opened(Shell(status=b"", end=End.EOF)), 0, output=b"out", runs=1),
    Case("no status and a reset", opened(Shell(status=b"", end=End.RESET)), 0, output=b"out", runs=1),
    Case("no status and garbage", opened(Shell(status=b"", end=End.GARBAGE)), 0, output=b"out", runs=1),
    Case("no status and no end", opened(Shell(status=b"", end=End.HANG)), 0, output=b"out", runs=1),
    Case("neither status nor EXIT", opened(Shell(status=b"", cut=Cut(b"EXIT", End.CLOSE))), 250,
         ("the connection to pod w-0 was lost",), runs=1, output=b"out"),
    Case("a false success", ends(status=dict(SUCCESS), output=b"out"), 251,
         ("pod w-0", "the server reports success, the command itself nothing"), b"out"),
    Case("a success that contradicts", opened(Shell(status=SUCCESS)), 251,
         ("pod w-0", "the command in pod w-0 reports code 3, the server 0"), b"out", runs=1,
         command="echo ran >> {witness}; printf out; exit 3"),
    Case("a code that contradicts", opened(Shell(status=exit_status(5))), 251,
         ("pod w-0", "the command in pod w-0 reports code 3, the server 5"), b"out", runs=1,
         command="echo ran >> {witness}; printf out; exit 3"),
    Case("a code without EXIT", ends(output=b"out", status=dict(exit_status(137))), 137,
         ("something in pod w-0 ended the command from outside (code 137, signal 9)",), b"out"),
    Case("a failure without EXIT", ends(output=b"out", status=dict(internal_error("the node is gone"))), 250,
         ("the command in pod w-0 was cut off", "the node is gone"), b"out"),
    Case("a status that is none", opened(Shell(status=b'{"status":"Maybe"}')), 245,
         ("neither Success nor Failure",), b"out", runs=1),
    Case("lost output", ends(b"%EXIT 0\n", output=b"out", status=dict(SUCCESS)), 251,
         ("the command in pod w-0 ended with code 0, but not all of its output came",), b"out"),
    Case("EXIT twice", ends(b"%EXIT 0\n", b"%EXIT 0\n"), 245, ("which can't be in the state",)),
    Case("EXIT 256", ends(b"%EXIT 256\n"), 245, ("which is no marker",)),
    Case("everything twice", opened(Shell(repeat=True)), 245, ("pod w-0",), runs=None),
    # not as it was, but not wrong
    Case("byte by byte", opened(Shell(split=1)), 0, output=b"out", runs=1),
    Case("in three bytes", opened(Shell(split=3)), 0, output=b"out", runs=1),
    Case("in fragments", opened(Shell(fragment=True)), 0, output=b"out", runs=1),
    Case("bytes in fragments", opened(Shell(split=1, fragment=True)), 0, output=b"out", runs=1),
    Case("v5", with_v5_alone(opened(Shell())), 0, output=b"out", runs=1, execs=2),
    Case("v5 byte by byte", with_v5_alone(opened(Shell(split=1))), 0, output=b"out", runs=1, execs=2),
    Case("a server that pings", opened(Peer(Wrapper(b"%" + START + b"\n", b"%EXIT 3\n", then=a_ping))), 3,
         output=b"there?"),
]

# What stands before the offence in the same frame or record is not shown yet.
WITH_OUTPUT_BEFORE = [
    Case("garbage in the same breath", opened(Peer(Wrapper(b"%" + START + b"\n", then=garbage_at_once))), 250,
         ("invalid WebSocket frame header",), b"out"),
    Case("a marker that is none", opened(Peer(Wrapper(b"%" + START + b"\n", then=a_bad_marker))), 245,
         ("which is no marker",), b"out"),
]

# fmt: on


@pytest.mark.parametrize("case", BEFORE_GO, ids=str)
def test_what_ends_before_go_has_started_nothing(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert [part for part in case.says if part not in outcome.ended.line] == []
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
def test_after_go_each_end_has_its_code_and_nothing_is_dialled_again(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    said = outcome.ended.line if case.says else outcome.ended.errors
    assert [part for part in case.says if part not in said] == []
    assert (outcome.ended.code, outcome.ended.output) == (case.code, case.output)
    assert bool(said) == bool(case.says)
    assert len(outcome.execs) == case.execs
    assert outcome.runs <= 1
    assert case.runs in (None, outcome.runs)


@pytest.mark.parametrize("case", WITH_OUTPUT_BEFORE, ids=str)
def test_what_came_before_the_offence_is_shown(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert [part for part in case.says if part not in outcome.ended.line] == []
    assert (outcome.ended.code, outcome.ended.output) == (case.code, case.output)
