"""What agent and keeper say to each other: each byte and each control once and in order, over any connections."""

from __future__ import annotations

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.request.channels import Output, stdin_messages
from mpirt.rsh.protocol.conversation import (
    Attached,
    Conversation,
    Ended,
    Fact,
    Fenced,
    NotStartable,
    Started,
    Used,
)
from mpirt.rsh.protocol.keeperframes import EndedBy, Usage
from tests.unit.rsh import keepers
from tests.unit.rsh.keepers import frame, u64

MIB = 1024 * 1024


def connected() -> Conversation:
    talk = Conversation()
    talk.connect()
    return talk


def hears(talk: Conversation, kind: int, number: int = 0, payload: bytes = b"", *, epoch: int = 1) -> list[Fact]:
    return list(talk.receive(frame(kind, epoch, number, payload)))


class TestAConnection:
    def test_a_connection_begins_with_attach(self) -> None:
        assert Conversation().connect() == frame(keepers.ATTACH, 1, 0, u64(0, 0))

    def test_a_connection_has_the_number_after_the_last_ones_and_asks_for_what_is_not_written(self) -> None:
        talk = connected()
        hears(talk, keepers.OUT, 0, b"abc")
        hears(talk, keepers.ERR, 0, b"de")
        talk.written(3, 1)

        assert talk.connect() == frame(keepers.ATTACH, 2, 0, u64(3, 1))
        assert hears(talk, keepers.ERR, 1, b"ef", epoch=2) == [Output(2, b"f")]

    def test_a_connection_tells_what_was_written_meanwhile_so_that_it_is_not_told_again(self) -> None:
        talk = connected()
        talk.disconnect()
        talk.written(131072, 0)

        assert talk.connect() == frame(keepers.ATTACH, 2, 0, u64(131072, 0))
        assert talk.written(131072 + 131071, 0) == b""

    def test_a_connection_asks_for_nothing_again_that_the_agent_has_had_from_another_switchboard(self) -> None:
        talk = Conversation()
        talk.resume(1, (300_000, 0), 0, b"", stdin_ended=False)
        talk.connect()
        # Its slow reader has taken less than that.
        talk.written(262_144, 0)
        talk.disconnect()

        assert talk.connect() == frame(keepers.ATTACH, (1 << 16) + 2, 0, u64(300_000, 0))

    def test_a_connection_says_again_what_the_keeper_may_not_have(self) -> None:
        talk = connected()
        talk.control(b"S", b"K\x0a", b"K\x0c")
        talk.stdin(b"abcdef")
        talk.stdin(b"")
        hears(talk, keepers.CONTROLLED, 1)
        hears(talk, keepers.TAKEN, 2, b"\0")

        controls = frame(keepers.CONTROL, 2, 2, b"K\x0a") + frame(keepers.CONTROL, 2, 3, b"K\x0c")
        stdin = frame(keepers.STDIN, 2, 2, b"cdef") + frame(keepers.STDIN_END, 2, 6)
        assert talk.connect() == frame(keepers.ATTACH, 2, 0, u64(0, 0)) + controls + stdin

    def test_a_connection_says_much_stdin_in_pieces(self) -> None:
        talk = Conversation()
        talk.stdin(b"a" * 32751)
        talk.stdin(b"b")

        pieces = frame(keepers.STDIN, 1, 0, b"a" * 32751) + frame(keepers.STDIN, 1, 32751, b"b")
        assert talk.connect() == frame(keepers.ATTACH, 1, 0, u64(0, 0)) + pieces

    def test_a_connection_forgets_what_was_done_while_nobody_was_connected(self) -> None:
        talk = connected()
        talk.control(b"S")
        talk.stdin(b"abc")
        talk.connect()

        assert hears(talk, keepers.ATTACHED, 1, b"\1" + u64(3), epoch=2) == [Attached()]
        assert talk.connect() == frame(keepers.ATTACH, 3, 0, u64(0, 0))

    def test_a_connection_does_not_go_on_with_half_a_frame_of_the_last(self) -> None:
        talk = connected()
        assert list(talk.receive(frame(keepers.OUT, 1, 0, b"abc")[:17])) == []
        talk.connect()

        assert hears(talk, keepers.OUT, 0, b"abc", epoch=2) == [Output(1, b"abc")]

    def test_a_connection_of_another_number_is_refused(self) -> None:
        talk = connected()
        talk.connect()

        with pytest.raises(PeerError, match="the keeper speaks of connection 1, this is 2"):
            hears(talk, keepers.ANSWER, epoch=1)


class TestWithout:
    def test_without_a_connection_nothing_is_said_and_all_of_it_waits(self) -> None:
        talk = connected()
        talk.disconnect()

        said = [talk.control(b"S"), talk.stdin(b"x"), talk.stdin(b""), talk.written(10**6, 0)]
        assert [*said, talk.beat(), talk.ask_usage(), talk.done()] == [b""] * 7
        words = frame(keepers.CONTROL, 2, 1, b"S") + frame(keepers.STDIN, 2, 0, b"x")
        assert talk.connect().endswith(words + frame(keepers.STDIN_END, 2, 1))


class TestWhatWeSay:
    def test_controls_are_numbered_from_one(self) -> None:
        talk = connected()

        assert talk.control(b"s", b"S") == frame(keepers.CONTROL, 1, 1, b"s") + frame(keepers.CONTROL, 1, 2, b"S")
        hears(talk, keepers.CONTROLLED, 1)
        assert talk.control(b"K\x0a") == frame(keepers.CONTROL, 1, 3, b"K\x0a")

    def test_an_end_of_our_own_has_no_number_and_is_said_again_on_the_next_connection(self) -> None:
        talk = connected()

        assert talk.end(b"Eone") == frame(keepers.CONTROL, 1, 0, b"Eone")
        assert talk.end(b"Etwo") == frame(keepers.CONTROL, 1, 0, b"Etwo")
        talk.disconnect()
        assert talk.connect() == frame(keepers.ATTACH, 2, 0, u64(0, 0)) + frame(keepers.CONTROL, 2, 0, b"Eone")
        assert talk.control(b"K\x0a") == frame(keepers.CONTROL, 2, 1, b"K\x0a")

    def test_stdin_says_where_it_stands(self) -> None:
        talk = connected()

        assert talk.stdin(b"abc") == frame(keepers.STDIN, 1, 0, b"abc")
        hears(talk, keepers.TAKEN, 2, b"\0")
        assert talk.stdin(b"d") == frame(keepers.STDIN, 1, 3, b"d")
        assert talk.stdin(b"") == frame(keepers.STDIN_END, 1, 4)

    def test_a_frame_of_stdin_fills_a_message_of_the_exec(self) -> None:
        said = connected().stdin(b"x" * 32751 + b"y")

        assert said == frame(keepers.STDIN, 1, 0, b"x" * 32751) + frame(keepers.STDIN, 1, 32751, b"y")
        assert [len(message) for message in stdin_messages(said)] == [32768, 18]

    def test_there_is_room_for_a_mib_of_stdin(self) -> None:
        talk = connected()
        talk.stdin(bytes(1024 * 1024 - 1))
        assert talk.stdin_room == 1

        with pytest.raises(ValueError, match="there is room for 1 bytes of stdin, not 2"):
            talk.stdin(b"ab")

    def test_none_is_read_after_its_end_or_when_the_command_has_closed_it(self) -> None:
        ended, closed = connected(), connected()
        ended.stdin(b"")
        hears(closed, keepers.TAKEN, 0, b"\1")

        assert (ended.stdin_room, closed.stdin_room) == (0, 0)

    def test_written_output_is_acknowledged_now_and_then(self) -> None:
        talk = connected()

        assert talk.written(524287, 0) == b""
        assert talk.written(524287, 1) == frame(keepers.ACK, 1, 0, u64(524287, 1))
        assert talk.written(524287, 524288) == b""
        assert talk.written(524288, 524288) == frame(keepers.ACK, 1, 0, u64(524288, 524288))

    def test_beat_done_and_the_question_about_usage_are_bare(self) -> None:
        talk = connected()

        assert talk.ask_usage() == frame(keepers.USAGE, 1)
        assert talk.beat() == frame(keepers.BEAT, 1)
        assert talk.done() == frame(keepers.DONE, 1)


class TestWhatTheKeeperSays:
    @pytest.mark.parametrize(
        ("kind", "payload", "fact"),
        [
            (keepers.STARTED, b"\1", Started(can_attach=True)),
            (keepers.STARTED, b"\0", Started(can_attach=False)),
            (keepers.USED, u64(1_500_000, 2**33) + b"\x04\0\0\0", Used(Usage(1.5, 2**33, 4))),
            (keepers.USED, bytes(20), Used(None)),
            (keepers.FAILED, b"no \xff", NotStartable("no \ufffd")),
            (keepers.FENCED, b"", Fenced()),
        ],
    )
    def test_each_frame_tells_one_fact(self, kind: int, payload: bytes, fact: Fact) -> None:
        assert hears(connected(), kind, 77, payload) == [fact]

    def test_an_answer_is_a_sign_of_life_and_no_more(self) -> None:
        assert hears(connected(), keepers.ANSWER) == []

    def test_output_that_came_already_does_not_come_again(self) -> None:
        talk = connected()
        hears(talk, keepers.OUT, 0, b"abc")

        assert hears(talk, keepers.OUT, 1, b"bcd") == [Output(1, b"d")]
        assert hears(talk, keepers.OUT, 0, b"abcd") == []
        assert hears(talk, keepers.ERR, 0, b"e") == [Output(2, b"e")]

    def test_frames_of_one_stream_that_come_together_are_one_fact(self) -> None:
        given = [
            (keepers.OUT, 0, b"ab"),
            (keepers.OUT, 2, b"c"),
            (keepers.ERR, 0, b"d"),
            (keepers.STARTED, 7, b"\1"),
        ]
        given += [(keepers.OUT, 1, b"bc"), (keepers.ERR, 1, b"e"), (keepers.OUT, 2, b"cf")]
        said = b"".join(frame(kind, 1, number, payload) for kind, number, payload in given)

        assert list(connected().receive(said)) == [
            Output(1, b"abc"),
            Output(2, b"d"),
            Started(can_attach=True),
            Output(2, b"e"),
            Output(1, b"f"),
        ]

    def test_output_before_an_offence_is_not_lost(self) -> None:
        facts = connected().receive(frame(keepers.OUT, 1, 0, b"ab") + frame(keepers.OUT, 2, 2, b"c"))

        assert next(facts) == Output(1, b"ab")
        with pytest.raises(PeerError, match="the keeper speaks of connection 2, this is 1"):
            next(facts)

    def test_output_that_is_skipped_is_refused(self) -> None:
        with pytest.raises(PeerError, match="the keeper skips output: byte 1 follows byte 0"):
            hears(connected(), keepers.OUT, 1, b"x")

    @pytest.mark.parametrize("kind", [keepers.OUT, keepers.ERR])
    def test_output_beyond_what_a_keeper_keeps_is_refused_until_some_is_acknowledged(self, kind: int) -> None:
        talk = connected()
        for at in range(0, 2 * MIB, 32768):
            hears(talk, kind, at, bytes(32768))

        too_much = "the keeper sends 2097153 bytes of output beyond what was acknowledged"
        with pytest.raises(PeerError, match=too_much):
            hears(talk, kind, 2 * MIB, b"x")
        talk.written(*((MIB, 0) if kind == keepers.OUT else (0, MIB)))
        assert hears(talk, kind, 2 * MIB, bytes(32768)) == [Output(kind - keepers.OUT + 1, bytes(32768))]

    def test_the_end_is_told_once(self) -> None:
        talk = connected()
        hears(talk, keepers.OUT, 0, b"abc")
        end = b"\0\7\1\1" + u64(3, 0)

        assert hears(talk, keepers.EXIT, 0, end) == [Ended(7, EndedBy.LEASE, left_open=True)]
        assert hears(talk, keepers.EXIT, 0, end) == []

    @pytest.mark.parametrize("lengths", [u64(4, 0), u64(2, 0), u64(3, 1)])
    def test_an_end_without_all_of_the_output_is_refused(self, lengths: bytes) -> None:
        talk = connected()
        hears(talk, keepers.OUT, 0, b"abc")

        with pytest.raises(PeerError, match=r"the keeper says that the command wrote . and . bytes, 3 and 0 came"):
            hears(talk, keepers.EXIT, 0, b"\0\0\0\0" + lengths)

    @pytest.mark.parametrize("done", [0, 3])
    def test_controls_that_were_not_said_or_were_done_already_are_refused(self, done: int) -> None:
        talk = connected()
        talk.control(b"S", b"K\x0a")
        hears(talk, keepers.CONTROLLED, 1)

        with pytest.raises(PeerError, match=f"the keeper has done control {done} of 2"):
            hears(talk, keepers.CONTROLLED, done)

    @pytest.mark.parametrize("taken", [1, 4])
    def test_stdin_that_was_not_said_or_was_taken_already_is_refused(self, taken: int) -> None:
        talk = connected()
        talk.stdin(b"abc")
        hears(talk, keepers.TAKEN, 2, b"\0")

        with pytest.raises(PeerError, match=f"the keeper has taken {taken} bytes of 3 of stdin"):
            hears(talk, keepers.TAKEN, taken, b"\0")
