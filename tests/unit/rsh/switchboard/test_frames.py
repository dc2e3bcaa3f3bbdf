"""Frames between the switchboard and its agents, byte by byte; and what an agent keeps of its command."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

import pytest

from mpirt.errors import ConfigError, ExitCode, MpirtError, PeerError
from mpirt.rsh.protocol.framing import Frame
from mpirt.rsh.session.task import Record, Resumption
from mpirt.rsh.switchboard import frames
from mpirt.rsh.switchboard.frames import Handover, Kind, end_of, read_record, resumption, write_record

MIB = 1024 * 1024


def framed(kind: int, payload: bytes = b"") -> bytes:
    return struct.pack("<I12x", len(payload) << 8 | kind) + payload


def counted(*parts: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def handed(texts: bytes, words: int, variables: int, *, signals: bytes = b"", tail: bytes = b"") -> bytes:
    fixed = struct.pack("<BIQQQ", 3, 4, 5, 6, 7)
    return fixed + counted(signals, b"kept", b"stdin") + struct.pack("<II", words, variables) + texts + tail


class TestTheSwitchboards:
    @pytest.mark.parametrize(
        ("made", "expected"),
        [
            (frames.welcome(258), b"\x01\x08\0\0" + bytes(12) + b"\x01\0\0\0\x02\x01\0\0"),
            (frames.offset(Kind.ROOM, 1), b"\x07\x08\0\0" + bytes(12) + b"\x01\0\0\0\0\0\0\0"),
            (frames.offset(Kind.TAKEN, 256), b"\x08\x08\0\0" + bytes(12) + b"\0\x01\0\0\0\0\0\0"),
            (frames.finish(250), b"\x09\x01\0\0" + bytes(12) + b"\xfa"),
        ],
        ids=["welcome", "room", "taken", "finish"],
    )
    def test_are_as_the_contract_has_them(self, made: bytes, expected: bytes) -> None:
        assert made == expected


class TestTheAgents:
    def test_first_may_have_8_mib(self) -> None:
        assert [*frames.reader().feed(framed(65, bytes(8 * MIB)))] == [Frame(65, 0, 0, bytes(8 * MIB))]

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            pytest.param(b"\x41\x01\0\x80" + bytes(12), r"type 65, 8388609 bytes", id="first"),
            pytest.param(framed(65) + b"\x42\x01\0\x01" + bytes(12), r"65537 bytes", id="later"),
            pytest.param(framed(64), "type 64", id="unknown"),
            pytest.param(framed(74), "type 74", id="unknown, too"),
            pytest.param(framed(4, b"out"), "type 4", id="the switchboard's"),
        ],
    )
    def test_break_the_rules_by_their_headers(self, data: bytes, said: str) -> None:
        with pytest.raises(PeerError, match="invalid frame from an agent: .*" + said):
            list(frames.reader().feed(data))

    def test_hold_numbers(self) -> None:
        assert frames.read_written(struct.pack("<QQQ", 1, 2, 3)) == (1, 2, 3)
        assert frames.read_broken(b"\x02\x20\0\0\0") == (2, 32)
        assert frames.read_signal(b"\x0f") == 15
        assert frames.read_errno(b"\x05\0\0\0") == 5

    @pytest.mark.parametrize(
        "read", [frames.read_written, frames.read_broken, frames.read_signal, frames.read_errno]
    )
    @pytest.mark.parametrize("payload", [b"", b"ab"], ids=["empty", "two bytes"])
    def test_of_another_length_break_the_rules(self, read: Callable[[bytes], object], payload: bytes) -> None:
        with pytest.raises(PeerError, match=f"a frame of {len(payload)} bytes"):
            read(payload)

    def test_about_a_third_stream_break_the_rules(self) -> None:
        with pytest.raises(PeerError, match="its stream 3 is broken"):
            frames.read_broken(b"\x03\x20\0\0\0")


class TestHandover:
    def test_that_of_a_new_command_is_read_back(self) -> None:
        given = Handover("ssh", "/work", ("w-0", "true"), {"A": "b=c", "EMPTY": ""}, has_stdin=True)

        assert frames.read_handover(frames.write_handover(given)) == given

    def test_is_read_whole(self) -> None:
        texts = b"mpirt-rsh\0/home\0w-0\0tr\xffue\0A=1\0B=x=y\0C\0"

        found = frames.read_handover(handed(texts, 2, 3, signals=b"\x0a\x0f"))

        assert found == Handover(
            "mpirt-rsh",
            "/home",
            ("w-0", "tr\udcffue"),
            {"A": "1", "B": "x=y", "C": ""},
            has_stdin=True,
            stdin_ended=True,
            generation=4,
            output=(5, 6),
            stdin_at=7,
            stdin=b"stdin",
            signals=(10, 15),
            kept=b"kept",
        )

    @pytest.mark.parametrize(
        ("words", "variables"),
        [(0, 0), (0, 2), (2, 0), (2**32 - 1, 2**32 - 1)],
        ids=["none", "few", "odd", "huge"],
    )
    def test_with_other_counts_than_texts_breaks_the_rules(self, words: int, variables: int) -> None:
        with pytest.raises(PeerError, match="does not hold the strings that it announces"):
            frames.read_handover(handed(b"rsh\0/\0w-0\0", words, variables))

    def test_with_an_open_end_breaks_the_rules(self) -> None:
        with pytest.raises(PeerError, match="does not hold the strings that it announces"):
            frames.read_handover(handed(b"rsh\0/\0w-0\0", 1, 0, tail=b"x"))

    def test_with_more_than_64_signals_breaks_the_rules(self) -> None:
        with pytest.raises(PeerError, match="65 signals in a HANDOVER"):
            frames.read_handover(handed(b"rsh\0/\0w-0\0", 1, 0, signals=bytes(65)))

    @pytest.mark.parametrize("length", range(60))
    def test_that_is_cut_off_anywhere_breaks_the_rules(self, length: int) -> None:
        whole = handed(b"rsh\0/\0w-0\0", 1, 0)
        assert len(whole) == 68

        with pytest.raises(PeerError):
            frames.read_handover(whole[:length])


REQUEST = b"\x02\0\0\0\x01\0\0\0-l\0a=b\0HOME=/r=\xff\0"


class TestACallOfMpirtDiscover:
    def test_has_words_and_variables(self) -> None:
        assert frames.read_discover_request(REQUEST) == (("-l", "a=b"), {"HOME": "/r=\udcff"})

    @pytest.mark.parametrize(
        "payload",
        [
            *(pytest.param(REQUEST[:length], id=f"{length} bytes") for length in range(len(REQUEST))),
            pytest.param(REQUEST + b"\0", id="more"),
            pytest.param(b"\xff" * 8 + REQUEST[8:], id="huge counts"),
        ],
    )
    def test_that_is_cut_off_or_counts_wrongly_breaks_the_rules(self, payload: bytes) -> None:
        with pytest.raises(PeerError, match=r"cut off|does not hold"):
            frames.read_discover_request(payload)

    def test_is_answered_with_a_list_and_lines_and_a_code(self) -> None:
        assert frames.discovered(253, b"w-0:1\n", b"so\n") == b"\1\xfd\6\0\0\0w-0:1\nso\n"

    def test_is_refused_with_the_reason(self) -> None:
        assert frames.refused("so \udcff") == b"\0so ?"


RECORD = Record("w-0", "0123456789abcdef", "worker", 4000, code=246, line="pod w-0 is being deleted")


def kept_by(**more: object) -> Handover:
    return Handover("mpirt-rsh", "/", ("w-0", "true"), {}, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("record", [RECORD, Record("w", "n", "")], ids=["ended", "begun"])
def test_a_record_comes_back_as_it_was(record: Record) -> None:
    assert read_record(write_record(record)) == record


def test_a_long_line_is_cut_so_that_an_agent_takes_the_record() -> None:
    kept = write_record(Record("w", "n", "", code=244, line="ä" * 20_000))

    found = read_record(kept)

    assert len(kept) <= 8192
    assert (found.code, found.line) == (244, "ä" * 1250)


def test_a_record_that_is_too_long_without_its_line_stays_as_it_is() -> None:
    assert len(write_record(Record("w" * 9000, "n", "", line="x"))) > 8192


@pytest.mark.parametrize("kept", [b"{", b"[]", b"{}", b"7", b"\xff"])
def test_what_is_no_record_breaks_the_rules(kept: bytes) -> None:
    with pytest.raises(PeerError, match="can't be read"):
        read_record(kept)


@pytest.mark.parametrize("kept", [b"", write_record(None)], ids=["never kept", "taken back"])
def test_there_is_nothing_to_go_on_with(kept: bytes) -> None:
    assert resumption(kept_by(generation=3, kept=kept)) is None


def test_a_session_goes_on_with_all_that_the_agent_knows() -> None:
    handover = kept_by(
        generation=2,
        kept=write_record(RECORD),
        output=(5, 6),
        stdin_at=7,
        stdin=b"abc",
        stdin_ended=True,
        signals=(10, 99, 15),
    )

    assert resumption(handover) == Resumption(
        RECORD, 2, (5, 6), 7, b"abc", stdin_ended=True, signals=(("USR1", 10), ("TERM", 15))
    )


def test_a_record_counts_as_that_of_another_process() -> None:
    found = resumption(kept_by(kept=write_record(RECORD)))

    assert found is not None
    assert found.generation == 1


NO_WAY = ConfigError("kubeconfig: not JSON")


@pytest.mark.parametrize(
    ("kept", "error", "line", "code"),
    [
        pytest.param(b"", NO_WAY, "kubeconfig: not JSON", ExitCode.CONFIG, id="nothing was started"),
        pytest.param(write_record(replace(RECORD, code=7, line="")), NO_WAY, "", 7, id="its end is known"),
        pytest.param(
            write_record(replace(RECORD, code=None)),
            NO_WAY,
            f"there is no way back to pod {RECORD.pod}, and the command ends there within the lease: {NO_WAY}",
            ExitCode.CONNECTION_LOST,
            id="it may run",
        ),
        pytest.param(b"{", PeerError("no record"), "no record", ExitCode.PEER, id="its record can't be read"),
    ],
)
def test_without_a_way_to_it_a_command_ends_as_far_as_is_known(
    kept: bytes, error: MpirtError, line: str, code: int
) -> None:
    assert end_of(kept_by(kept=kept), error) == (line, code)
