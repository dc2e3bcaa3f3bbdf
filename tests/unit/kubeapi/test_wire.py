"""HTTP/1.1 as bytes: requests as they are written, responses in whatever pieces they come."""

from __future__ import annotations

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.request.http1 import Head, ResponseReader, escaped, query, request

SIZED = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
    b"3;name=value\r\nhel\r\n0002\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)


def read(*pieces: bytes, body_limit: int = 100) -> ResponseReader:
    reader = ResponseReader(body_limit=body_limit)
    for piece in pieces:
        reader.feed(piece)
    return reader


def in_pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


class TestRequests:
    def test_are_written_line_by_line(self) -> None:
        data = request("GET", "/api?x=1", [("Host", "h:1"), ("Accept", "a/b")])

        assert data == b"GET /api?x=1 HTTP/1.1\r\nHost: h:1\r\nAccept: a/b\r\n\r\n"

    @pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\rb"])
    def test_can_not_be_given_more_headers_by_a_value(self, value: str) -> None:
        with pytest.raises(ValueError, match="line break"):
            request("GET", "/", [("Host", value)])

    def test_quote_everything_that_is_not_plainly_safe(self) -> None:
        assert escaped("aZ9-._~/ +&=%\n\x00é") == "aZ9-._~%2F%20%2B%26%3D%25%0A%00%C3%A9"

    def test_may_repeat_a_name_in_their_query(self) -> None:
        assert query([("command", "a b"), ("command", "c&d")]) == "command=a%20b&command=c%26d"


class TestResponses:
    @pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
    @pytest.mark.parametrize("data", [pytest.param(SIZED, id="sized"), pytest.param(CHUNKED, id="chunked")])
    def test_may_come_in_any_pieces(self, data: bytes, size: int) -> None:
        reader = read(*in_pieces(data, size))

        assert reader.answer()[1] == b"hello"
        assert (reader.complete, reader.framed, reader.reusable, reader.leftover) == (True, True, True, b"")

    def test_have_a_status_and_headers(self) -> None:
        reader = read(b"HTTP/1.1 404 \r\nA: 1\r\na:2\r\nContent-Length: 0\r\n\r\n")

        assert reader.head == Head(404, {"a": "1, 2", "content-length": "0"}, keeps_alive=True)
        assert reader.head.header("a") == "1, 2"
        assert reader.head.header("b") == ""

    def test_may_lack_a_phrase_and_headers(self) -> None:
        reader = read(b"HTTP/1.1 403\r\n\r\n")

        assert reader.head == Head(403, {}, keeps_alive=True)

    def test_hand_out_their_body_as_it_comes(self) -> None:
        reader = read(SIZED[:-3])

        first = reader.take()
        reader.feed(b"llo")

        assert (first, reader.take(), reader.take()) == (b"he", b"llo", b"")

    def test_without_a_length_end_with_the_connection(self) -> None:
        reader = read(b"HTTP/1.1 200 OK\r\n\r\n", b"hel", b"lo")
        before = reader.complete

        reader.eof()

        assert (before, reader.complete, reader.framed, reader.reusable) == (False, True, False, False)
        assert reader.answer()[1] == b"hello"

    @pytest.mark.parametrize("data", [b"", b"HTTP/1.1 2", SIZED[:-1], CHUNKED[:-2]])
    def test_that_are_cut_short_are_not_complete(self, data: bytes) -> None:
        reader = read(data)

        reader.eof()

        assert not reader.complete
        with pytest.raises(ValueError, match="not complete"):
            reader.answer()

    @pytest.mark.parametrize("status", [101, 204, 304])
    def test_may_have_no_body(self, status: int) -> None:
        reader = read(b"HTTP/1.1 %d X\r\nContent-Length: 5\r\n\r\nafter" % status)

        assert (reader.complete, reader.leftover, reader.reusable) == (True, b"after", False)

    def test_may_be_announced_by_interim_ones(self) -> None:
        reader = read(b"HTTP/1.1 100 Continue\r\n\r\n" * 8 + SIZED)

        assert reader.answer()[1] == b"hello"

    @pytest.mark.parametrize(
        ("data", "untouched"),
        [
            pytest.param(b"", True, id="nothing"),
            pytest.param(b"H", False, id="a byte"),
            pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n", False, id="an interim answer"),
            pytest.param(SIZED, False, id="all"),
        ],
    )
    def test_are_untouched_before_the_first_byte(self, data: bytes, untouched: bool) -> None:  # noqa: FBT001  a column
        assert read(data).untouched is untouched

    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(SIZED.replace(b"HTTP/1.1", b"HTTP/1.0"), id="HTTP/1.0"),
            pytest.param(SIZED.replace(b"Content-Type: a/b", b"Connection: Close"), id="Connection: close"),
        ],
    )
    def test_may_end_their_connection(self, data: bytes) -> None:
        assert not read(data).reusable


class TestLimits:
    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", id="a length"),
            pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n", id="one chunk"),
            pytest.param(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"33\r\n" + b"x" * 51 + b"\r\n32\r\n",
                id="chunks together",
            ),
            pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 101, id="until the end"),
        ],
    )
    def test_hold_for_the_body_however_it_is_framed(self, data: bytes) -> None:
        with pytest.raises(PeerError, match="body is larger than 100 bytes"):
            read(data)

    def test_do_not_hold_for_a_body_that_is_meant_to_be_endless(self) -> None:
        reader = ResponseReader(body_limit=100, endless=True)
        reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

        taken = 0
        for _ in range(1000):
            reader.feed(b"100\r\n" + b"x" * 256 + b"\r\n")
            taken += len(reader.take())

        assert taken == 256_000

    def test_hold_for_the_no_to_an_endless_question(self) -> None:
        reader = ResponseReader(body_limit=100, endless=True)

        with pytest.raises(PeerError, match="larger than 100 bytes"):
            reader.feed(b"HTTP/1.1 500 X\r\nContent-Length: 101\r\n\r\n")

    @pytest.mark.parametrize(
        ("data", "text"),
        [
            pytest.param(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 65536, "headers are longer than 65536", id="headers"),
            pytest.param(b"HTTP/1.1 100 X\r\n\r\n" * 9, "more than 8 interim answers", id="interim answers"),
            pytest.param(CHUNKED[:50] + b"1" * 8192, "longer than a line may be", id="a chunk's size"),
        ],
    )
    def test_hold_for_everything_else(self, data: bytes, text: str) -> None:
        with pytest.raises(PeerError, match=text):
            read(data)
