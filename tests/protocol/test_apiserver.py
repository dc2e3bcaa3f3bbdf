"""What the loopback API server promises to the tests that stand on it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator

import pytest

from mpirt.errors import MpirtError, PeerError
from mpirt.kubeapi.request.execs import ExecApi
from mpirt.kubeapi.request.websocket import Closed, Message, Pong, binary, close, ping
from tests.apiserver.channel import (
    CLOSE_CHANNEL,
    STATUS,
    STDERR,
    STDIN,
    STDOUT,
    SUCCESS,
    V4,
    V5,
    Channel,
    as_go_writes_it,
    exit_status,
)
from tests.apiserver.frames import ClientFrames
from tests.apiserver.peer import Peer
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.apiserver.shell import Cut, End, Shell
from tests.protocol.execs import Exec

Begin = Callable[..., Exec]
MASK = b"mask"


@pytest.fixture
def begin(apiserver: ApiServer, api: ExecApi) -> Iterator[Begin]:
    """Begins execs, and closes them at the end."""
    apiserver.world.put(pod("w-0"))
    begun: list[Exec] = []

    def make(command: str, *, protocol: str = V4) -> Exec:
        begun.append(Exec(api, command, protocol=protocol))
        return begun[-1]

    yield make
    for each in begun:
        each.close()


class TestAShell:
    @pytest.mark.parametrize(
        ("command", "code"), [("exit 0", 0), ("exit 42", 42), ("exit 255", 255), ("kill -9 $$", 137)]
    )
    def test_says_how_the_command_ended(self, begin: Begin, command: str, code: int) -> None:
        said, closed = begin(f"echo out; echo err >&2; {command}").everything()

        assert (said[STDOUT], said[STDERR]) == (b"out\n", b"err\n")
        assert json.loads(said[STATUS]) == exit_status(code)
        assert closed == Closed(1000, "")

    def test_passes_stdin_on(self, begin: Begin) -> None:
        session = begin("read -r line; echo $line")

        session.send(STDIN, b"hel")
        session.send(STDIN, b"")
        session.send(STDIN, b"lo\n")

        assert session.message() == (STDOUT, b"hello\n")

    def test_ends_stdin_on_v5_alone(self, begin: Begin) -> None:
        session = begin("cat; echo end", protocol=V5)

        session.send(STDIN, b"a\n")
        session.send(CLOSE_CHANNEL, bytes([STDIN]))

        assert session.everything()[0][STDOUT] == b"a\nend\n"

    def test_takes_it_for_an_unknown_channel_on_v4(self, begin: Begin) -> None:
        session = begin("read -r line; echo $line")

        session.send(CLOSE_CHANNEL, bytes([STDIN]))
        session.send(STDIN, b"still there\n")

        assert session.message() == (STDOUT, b"still there\n")

    def test_waits_until_its_output_is_closed(self, apiserver: ApiServer, begin: Begin) -> None:
        session = begin("exec 3<&0; (read -r line <&3; echo $line) & exit 3")
        running = apiserver.wait_for_session()

        while running.returncode is None:
            session.send(STDIN, b"")
        session.send(STDIN, b"late\n")

        assert session.message() == (STDOUT, b"late\n")
        assert json.loads(session.message()[1]) == exit_status(3)

    def test_ends_the_commands_stdin_when_the_client_is_lost_but_does_not_kill_it(
        self, apiserver: ApiServer, begin: Begin
    ) -> None:
        session = begin("while read -r line; do :; done; exit 5")
        running = apiserver.wait_for_session()
        alive = running.processes()

        session.close()

        assert running.finished.wait(20.0)
        assert (len(alive), running.returncode) == (1, 5)

    def test_answers_pings_while_its_command_reads(self, begin: Begin) -> None:
        session = begin("cat")
        session.next()

        session.raw(ping(b"there?", MASK))

        assert session.next() == Pong(b"there?")

    def test_carries_a_lot_both_ways(self, begin: Begin) -> None:
        session = begin("head -c 3145728")
        data = bytes(range(256)) * 4096 * 3

        for start in range(0, len(data), 30_000):
            session.send(STDIN, data[start : start + 30_000])

        assert session.everything()[0][STDOUT] == data


class TestAShellThatMisbehaves:
    def test_may_split_its_output(self, apiserver: ApiServer, begin: Begin) -> None:
        apiserver.on("exec", Shell(split=2))
        session = begin("printf hello")

        assert [session.message() for _ in range(3)] == [(STDOUT, b"he"), (STDOUT, b"ll"), (STDOUT, b"o")]

    def test_may_say_everything_twice(self, apiserver: ApiServer, begin: Begin) -> None:
        apiserver.on("exec", Shell(repeat=True))

        assert begin("printf hello").everything()[0][STDOUT] == b"hellohello"

    def test_may_fragment(self, apiserver: ApiServer, begin: Begin) -> None:
        apiserver.on("exec", Shell(fragment=True))

        assert begin("printf hello").message() == (STDOUT, b"hello")

    @pytest.mark.parametrize(
        ("status", "said"),
        [
            pytest.param(SUCCESS, {STATUS: as_go_writes_it(SUCCESS)}, id="false Success"),
            pytest.param(b"{nonsense", {STATUS: b"{nonsense"}, id="no JSON"),
            pytest.param(b"", {}, id="none"),
        ],
    )
    def test_may_say_another_status(
        self, apiserver: ApiServer, begin: Begin, status: bytes, said: dict[int, bytes]
    ) -> None:
        apiserver.on("exec", Shell(status=status))
        found = begin("exit 3").everything()[0]
        found.pop(STDOUT)

        assert found == said

    @pytest.mark.parametrize(
        ("end", "closed"), [(End.CLOSE, Closed(1000, "")), (End.EOF, None), (End.RESET, None)]
    )
    def test_may_end_in_the_middle(
        self, apiserver: ApiServer, begin: Begin, end: End, closed: Closed | None
    ) -> None:
        apiserver.on("exec", Shell(cut=Cut(at=b"two", end=end)))
        session = begin("echo one >&2; read -r line; echo two >&2; sleep 1000")
        first = session.message()
        session.send(STDIN, b"\n")

        try:
            assert session.everything() == ({}, closed)
        except MpirtError as error:
            assert end is End.RESET, error
        assert first == (STDERR, b"one\n")

    def test_may_end_on_request(self, apiserver: ApiServer, begin: Begin) -> None:
        session = begin("sleep 1000")
        session.next()

        apiserver.wait_for_session().end(End.EOF)

        assert session.everything() == ({}, None)

    def test_may_talk_garbage(self, apiserver: ApiServer, begin: Begin) -> None:
        apiserver.on("exec", Shell(cut=Cut(at=b"two", end=End.GARBAGE, after=True)))
        session = begin("echo one two >&2; sleep 1000")
        said = session.message()

        with pytest.raises(PeerError):
            session.next()
        assert said == (STDERR, b"one two\n")

    def test_may_freeze(self, apiserver: ApiServer, begin: Begin) -> None:
        session = begin("echo ready; cat")
        session.message()
        running = apiserver.wait_for_session()

        running.end(End.HANG)
        session.raw(ping(b"there?", MASK))

        assert session.stream.read() is None
        assert running.processes() != []


class TestComplaints:
    @pytest.mark.parametrize(
        ("data", "complaint"),
        [
            pytest.param(b"\x82\x01\x00", "a client's frame is not masked", id="not masked"),
            pytest.param(b"\x02\x81mask\x00", "a message is fragmented", id="begun"),
            pytest.param(b"\x80\x81mask\x00", "a message is fragmented", id="ended"),
            (b"\xc2\x81mask\x00", "a frame uses an extension that was not negotiated"),
        ],
    )
    def test_are_of_what_a_go_server_would_stumble_over(self, data: bytes, complaint: str) -> None:
        frames = ClientFrames()
        frames.feed(data)

        assert frames.complaints == [complaint]

    def test_are_none_of_what_a_client_writes(self) -> None:
        frames = ClientFrames()

        found = frames.feed(
            binary(b"\x00hello", MASK) + binary(bytes(70_000), MASK) + ping(b"x", MASK) + close(1000, MASK)
        )

        assert frames.complaints == []
        assert [len(frame.payload) for frame in found] == [6, 70_000, 1, 2]

    def test_of_a_wrong_half_close_end_the_session(self, apiserver: ApiServer, begin: Begin) -> None:
        session = begin("cat", protocol=V5)
        session.next()

        session.send(CLOSE_CHANNEL, b"\x00\x00")

        assert session.next() is None
        assert apiserver.wait_for_session().channel.complaints == [
            "a CLOSE message of 3 bytes: the server drops that"
        ]
        apiserver.wait_for_session().channel.complaints.clear()


class TestAStream:
    """TlsStream's own promises, with somebody at the other end."""

    def test_takes_what_the_peer_does_not_and_sends_it_later(self, apiserver: ApiServer, begin: Begin) -> None:
        gate = threading.Event()

        def reads_late(channel: Channel) -> None:
            assert gate.wait(20.0)
            data = b"".join(channel.next_message()[1] for _ in range(400))
            channel.stdout(hashlib.sha256(data).digest())

        apiserver.on("exec", Peer(reads_late))
        session, sent = begin(""), hashlib.sha256()
        for number in range(400):
            piece = number.to_bytes(2) * 15_000
            sent.update(piece)
            session.send(STDIN, piece)
        held = session.stream.unsent
        gate.set()

        assert session.message() == (STDOUT, sent.digest())
        assert (held > 0, session.stream.unsent) == (True, 0)

    def test_says_nothing_when_there_is_nothing(self, begin: Begin) -> None:
        session = begin("sleep 1000")
        assert isinstance(session.next(), Message)

        assert session.stream.read() is None
