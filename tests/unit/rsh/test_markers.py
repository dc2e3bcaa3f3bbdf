"""Markers are found wherever they stand, and nothing else is ever lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpirt.errors import PeerError
from mpirt.rsh.protocol.markers import (
    Ack,
    Beat,
    End,
    Exit,
    Gone,
    Hello,
    KeeperHere,
    Marker,
    Started,
    parse_marker,
)
from mpirt.rsh.protocol.streams import MarkerFilter

NONCE = "0123abcd"
OPENING = b"\x01mpirt-0123abcd "


def parts(*pieces: bytes) -> list[bytes | Marker]:
    """What a filter gives for pieces of a stream, neighbouring bytes joined."""
    markers = MarkerFilter(NONCE)
    found: list[bytes | Marker] = []
    for piece in [*(part for data in pieces for part in markers.feed(data)), markers.flush()]:
        if isinstance(piece, bytes) and found and isinstance(found[-1], bytes):
            found[-1] += piece
        elif piece != b"":
            found.append(piece)
    return found


class TestOneMarker:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (b"HELLO", Hello()),
            (b"START none guarded own", Started(raw_stdin=False, guarded=True, own_session=True)),
            (b"START text unguarded own", Started(raw_stdin=False, guarded=False, own_session=True)),
            (b"START raw guarded shared", Started(raw_stdin=True, guarded=True, own_session=False)),
            (b"BEAT", Beat()),
            (b"ACK", Ack()),
            (b"EXIT 0", Exit(0)),
            (b"EXIT 255", Exit(255)),
            (b"END", End()),
            (b"END open", End(left_open=True)),
            (b"KEEPER 1 4000", KeeperHere(4000)),
            (b"GONE 18446744073709551615", Gone(2**64 - 1)),
        ],
    )
    def test_it_is_read(self, text: bytes, expected: Marker) -> None:
        assert parse_marker(text) == expected

    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"hello",
            b"HELLO you",
            b"KEEPER",
            b"KEEPER 1",
            b"KEEPER 2 4000",
            b"KEEPER 1 4000 1",
            b"KEEPER 1 -1",
            b"BEAT now",
            b"GONE",
            b"GONE away",
            b"GONE 18446744073709551616",
            b"EXIT",
            b"EXIT 256",
            b"EXIT -1",
            b"EXIT 1 2",
            b"EXIT \xc2\xb2",
            b"START",
            b"START raw guarded",
            b"START fast guarded own",
            b"START raw watched own",
            b"START raw guarded mine",
            b"END ",
            b"END OPEN",
            b"END open open",
            b"OTHER",
        ],
    )
    def test_anything_else_breaks_the_protocol(self, text: bytes) -> None:
        with pytest.raises(PeerError, match="which is no marker"):
            parse_marker(text)


class TestTheStream:
    def test_a_marker_may_stand_in_the_middle_of_a_line(self) -> None:
        assert parts(b"one " + OPENING + b"EXIT 7\nline\n") == [b"one ", Exit(7), b"line\n"]

    def test_markers_may_follow_each_other(self) -> None:
        assert parts(OPENING + b"ACK\n" + OPENING + b"BEAT\n") == [Ack(), Beat()]

    def test_a_marker_may_be_cut_anywhere(self) -> None:
        text = OPENING + b"EXIT 7\n"
        for cut in range(len(text)):
            assert parts(b"a" + text[:cut], text[cut:] + b"b") == [b"a", Exit(7), b"b"]

    @pytest.mark.parametrize(
        "text",
        [
            b"\x01",
            b"\x01\x01mpirt",
            b"\x01mpirt-ffffffff EXIT 0\n",
            b"mpirt-0123abcd EXIT 0\n",
            OPENING[:-1] + b"\nEXIT 0\n",
        ],
    )
    def test_what_only_looks_like_a_marker_is_output(self, text: bytes) -> None:
        assert parts(b"a" + text + b"b") == [b"a" + text + b"b"]
        assert parts(*(bytes([byte]) for byte in text)) == [text]

    def test_a_marker_that_never_ends_breaks_the_protocol(self) -> None:
        markers = MarkerFilter(NONCE)
        assert list(markers.feed(OPENING + b"x" * 64)) == []

        with pytest.raises(PeerError, match="began a marker without an end"):
            list(markers.feed(b"x" * 65))


class TestFlushing:
    def test_ordinary_bytes_are_never_held_back(self) -> None:
        markers = MarkerFilter(NONCE)

        assert list(markers.feed(b"a\x01b")) == [b"a\x01b"]
        assert not markers.holds_back

    def test_what_may_become_a_marker_is_held_back_until_then(self) -> None:
        markers = MarkerFilter(NONCE)

        assert list(markers.feed(b"a\x01mp")) == [b"a"]
        assert markers.holds_back
        assert markers.flush() == b"\x01mp"
        assert not markers.holds_back
        assert markers.flush() == b""
        assert list(markers.feed(b"x")) == [b"x"]

    def test_a_marker_is_found_though_its_beginning_was_shown(self) -> None:
        markers = MarkerFilter(NONCE)
        list(markers.feed(OPENING[:4]))
        markers.flush()

        assert list(markers.feed(OPENING[4:] + b"EXIT 7\nrest")) == [Exit(7), b"rest"]

    def test_nothing_is_shown_twice(self) -> None:
        markers = MarkerFilter(NONCE)
        list(markers.feed(b"\x01mp"))
        markers.flush()

        assert list(markers.feed(b"i\x01m")) == [b"i"]
        assert markers.flush() == b"\x01m"

    def test_a_marker_itself_is_never_shown(self) -> None:
        markers = MarkerFilter(NONCE)

        assert list(markers.feed(OPENING + b"EX")) == []
        assert not markers.holds_back
        assert markers.flush() == b""
        assert list(markers.feed(b"IT 1\n")) == [Exit(1)]


TEXTS = st.sampled_from([b"a", b"\n", b"\x01", b"\x01m", b"\x01mpirt-", OPENING[:-1], b"0123abcd", b"EXIT 1\n"])


@given(st.lists(TEXTS | st.binary(max_size=3) | st.just(OPENING + b"ACK\n")), st.data())
def test_every_way_to_cut_a_stream_gives_the_same(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces).replace(OPENING + b"E", b"")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    ends = [*cuts, len(stream)]

    whole, cut = _collected([stream]), _collected([stream[a:b] for a, b in zip([0, *cuts], ends, strict=True)])

    assert whole == cut


@given(st.binary(max_size=40).map(lambda text: text.replace(OPENING, b"")), st.lists(st.booleans(), max_size=40))
def test_a_flush_at_any_time_loses_nothing(text: bytes, flushes: list[bool]) -> None:
    markers = MarkerFilter(NONCE)
    found = b""
    for number, byte in enumerate(text):
        found += b"".join(part for part in markers.feed(bytes([byte])) if isinstance(part, bytes))
        if number < len(flushes) and flushes[number]:
            found += markers.flush()

    assert found + markers.flush() == text


def _collected(pieces: list[bytes]) -> list[bytes | Marker] | str:
    try:
        return parts(*pieces)
    except PeerError:
        return "broken"
