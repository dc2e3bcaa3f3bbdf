"""Frames between the switchboard and its agents, byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from mpirt.boards.protocol import frame
from mpirt.errors import PeerError
from mpirt.rsh.switchboard import frames
from mpirt.rsh.switchboard.frames import FrameReader, Handover, Kind

MIB = 1024 * 1024


def framed(kind: int, payload: bytes = b"") -> bytes:
    return struct.pack("<IB", len(payload), kind) + payload


def counted(*parts: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def handed(texts: bytes, words: int, variables: int, *, signals: bytes = b"", tail: bytes = b"") -> bytes:
    fixed = struct.pack("<BIQQQ", 3, 4, 5, 6, 7)
    return fixed + counted(signals, b"kept", b"stdin") + struct.pack("<II", words, variables) + texts + tail


class TestTheSwitchboards:
    @pytest.mark.parametrize(
        ("made", "expected"),
        [
            (frames.welcome(258), b"\x08\0\0\0\x01\x01\0\0\0\x02\x01\0\0"),
            (frames.offset(Kind.ROOM, 1), b"\x08\0\0\0\x07\x01\0\0\0\0\0\0\0"),
            (frames.offset(Kind.TAKEN, 256), b"\x08\0\0\0\x08\0\x01\0\0\0\0\0\0"),
            (frames.finish(250), b"\x01\0\0\0\x09\xfa"),
            (frame(Kind.FOLLOW), b"\0\0\0\0\x0a"),
            (frame(Kind.OUT, b"ab"), b"\x02\0\0\0\x04ab"),
        ],
        ids=["welcome", "room", "taken", "finish", "follow", "out"],
    )
    def test_are_as_the_contract_has_them(self, made: bytes, expected: bytes) -> None:
        assert made == expected


class TestTheAgents:
    def test_are_found_wherever_they_are_cut(self) -> None:
        data = framed(65, b"first") + framed(66, b"x" * 300) + framed(68, b"\x0f")
        for size in (1, 2, 3, 7, len(data)):
            reader = FrameReader()
            pieces = [data[at : at + size] for at in range(0, len(data), size)]

            found = [each for piece in pieces for each in reader.feed(piece)]

            assert found == [(Kind.HANDOVER, b"first"), (Kind.STDIN, b"x" * 300), (Kind.SIGNAL, b"\x0f")]

    def test_first_may_have_8_mib(self) -> None:
        assert [len(payload) for _, payload in FrameReader().feed(framed(65, bytes(8 * MIB)))] == [8 * MIB]

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            pytest.param(struct.pack("<IB", 8 * MIB + 1, 65), "8388608 are the most", id="first"),
            pytest.param(framed(65) + struct.pack("<IB", 65537, 66), "65536 are the most", id="later"),
            pytest.param(framed(64), "a frame of type 64", id="unknown"),
            pytest.param(framed(74), "a frame of type 74", id="unknown, too"),
            pytest.param(framed(4, b"out"), "a frame of type 4", id="the switchboard's"),
        ],
    )
    def test_break_the_rules_by_their_headers(self, data: bytes, said: str) -> None:
        with pytest.raises(PeerError, match=said):
            list(FrameReader().feed(data))

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
        with pytest.raises(PeerError, match="does not hold what it says"):
            frames.read_handover(handed(b"rsh\0/\0w-0\0", words, variables))

    def test_with_an_open_end_breaks_the_rules(self) -> None:
        with pytest.raises(PeerError, match="does not hold what it says"):
            frames.read_handover(handed(b"rsh\0/\0w-0\0", 1, 0, tail=b"x"))

    def test_with_more_than_64_signals_breaks_the_rules(self) -> None:
        with pytest.raises(PeerError, match="does not hold what it says"):
            frames.read_handover(handed(b"rsh\0/\0w-0\0", 1, 0, signals=bytes(65)))

    @pytest.mark.parametrize("length", range(60))
    def test_that_is_cut_off_anywhere_breaks_the_rules(self, length: int) -> None:
        whole = handed(b"rsh\0/\0w-0\0", 1, 0)
        assert len(whole) == 68

        with pytest.raises(PeerError):
            frames.read_handover(whole[:length])
