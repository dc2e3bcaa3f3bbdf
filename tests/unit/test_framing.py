"""The layout of frames: literal bytes on one side, docs/keeper.md on the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpirt.errors import PeerError
from mpirt.rsh.protocol.framing import HEADER, Frame, FrameReader, frame, header, read_header

ONE = b"\x03\x02\0\0\x07\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01ab"
LONG = b"\x04\x2c\x01\0" + bytes(12) + b"x" * 300
FRAMES = [Frame(3, 7, 0x0102030405060708, b"ab"), Frame(4, 0, 0, b"x" * 300)]


def reader() -> FrameReader:
    return FrameReader("a peer", {3: 2, 4: 300})


def test_a_frame_is_a_header_and_its_payload() -> None:
    assert frame(3, b"ab", epoch=7, number=0x0102030405060708) == ONE
    assert frame(4, b"x" * 300) == LONG


def test_a_header_has_the_type_and_a_length_of_24_bits() -> None:
    assert header(9, 0xABCDEF) == b"\x09\xef\xcd\xab" + bytes(12)
    assert read_header(b"?\x09\xef\xcd\xab", 1) == (9, 0xABCDEF)
    assert len(header(9, 0)) == HEADER


@given(st.lists(st.integers(1, 700), max_size=8))
def test_frames_may_be_cut_anywhere(sizes: list[int]) -> None:
    data, reads, found = ONE + LONG + ONE, reader(), []
    for size in [*sizes, len(data)]:
        found += list(reads.feed(data[:size]))
        data = data[size:]

    assert found == [*FRAMES, FRAMES[0]]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        pytest.param(b"\x05\0\0\0", "type 5, 0 bytes", id="an unknown type"),
        pytest.param(b"\x03\x03\0\0", "type 3, 3 bytes", id="a payload that is too long for its type"),
    ],
)
def test_an_invalid_frame_is_refused_before_its_payload_has_come(bad: bytes, said: str) -> None:
    with pytest.raises(PeerError) as caught:
        list(reader().feed(ONE + bad + bytes(12)))

    assert str(caught.value) == f"invalid frame from a peer: {said}"
