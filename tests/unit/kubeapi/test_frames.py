"""WebSocket frames against the bytes of RFC 6455: what is written, what is read, what is not taken."""

from __future__ import annotations

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.request.websocket import Closed, FrameReader, Message, Ping, Pong, binary, close, ping, pong

# The mask of the RFC's examples.
MASK = bytes.fromhex("37fa213d")


class TestWritten:
    """Section 5.7 has "Hello" in a masked frame; as binary its first byte is 82."""

    def test_a_message(self) -> None:
        assert binary(b"Hello", MASK) == bytes.fromhex("82 85 37fa213d 7f9f4d5158")

    def test_nothing(self) -> None:
        assert binary(b"", MASK) == bytes.fromhex("82 80 37fa213d")

    def test_ping_pong_and_close(self) -> None:
        assert ping(b"Hello", MASK) == bytes.fromhex("89 85 37fa213d 7f9f4d5158")
        assert pong(b"Hello", MASK) == bytes.fromhex("8a 85 37fa213d 7f9f4d5158")
        assert close(1000, MASK) == bytes.fromhex("88 82 37fa213d 3412")

    @pytest.mark.parametrize(
        ("size", "header"),
        [(125, "82 fd"), (126, "82 fe 007e"), (65535, "82 fe ffff"), (65536, "82 ff 0000000000010000")],
    )
    def test_lengths(self, size: int, header: str) -> None:
        start = bytes.fromhex(header) + MASK

        frame = binary(bytes(size), MASK)

        assert frame == start + (MASK * (size // 4 + 1))[:size]


class TestRead:
    @pytest.mark.parametrize(
        ("data", "event"),
        [
            pytest.param("8205 48656c6c6f", Message(b"Hello"), id="binary"),
            pytest.param("8105 48656c6c6f", Message(b"Hello"), id="text"),
            pytest.param("8200", Message(b""), id="empty"),
            pytest.param("827e 0005 48656c6c6f", Message(b"Hello"), id="a length longer than it need be"),
            pytest.param("0203 48656c 8002 6c6f", Message(b"Hello"), id="fragments"),
            pytest.param("8905 48656c6c6f", Ping(b"Hello"), id="ping"),
            pytest.param("8a00", Pong(b""), id="pong"),
            pytest.param("8807 03e8 48656c6c6f", Closed(1000, "Hello"), id="close"),
            pytest.param("8800", Closed(None, ""), id="close without a code"),
            pytest.param("8801 03", Closed(None, ""), id="close with half a code"),
        ],
    )
    def test_byte_by_byte(self, data: str, event: object) -> None:
        reader = FrameReader()

        events = [found for byte in bytes.fromhex(data) for found in reader.feed(bytes([byte]))]

        assert events == [event]

    @pytest.mark.parametrize(("size", "header"), [(126, "827e007e"), (65536, "827f0000000000010000")])
    def test_lengths(self, size: int, header: str) -> None:
        assert list(FrameReader().feed(bytes.fromhex(header) + b"x" * size)) == [Message(b"x" * size)]

    def test_several_at_once(self) -> None:
        assert list(FrameReader().feed(bytes.fromhex("820141 8900 820142 82"))) == [
            Message(b"A"),
            Ping(b""),
            Message(b"B"),
        ]

    def test_control_frames_between_fragments(self) -> None:
        assert list(FrameReader().feed(bytes.fromhex("020141 8900 800142"))) == [Ping(b""), Message(b"AB")]

    @pytest.mark.parametrize(
        ("data", "text"),
        [
            pytest.param("c200", "header: c2 00", id="compressed"),
            pytest.param("8280 00000000", "invalid WebSocket frame header", id="masked"),
            pytest.param("8300", "invalid WebSocket frame header", id="an unknown kind"),
            pytest.param("ffff ffffffffffffffff", "header: ff ff ff ff ff ff ff ff", id="garbage"),
            pytest.param("897e 0080", "longer than 125 bytes", id="a long ping"),
            pytest.param("0900", "in fragments", id="half a ping"),
            pytest.param("8000", "out of order", id="an end without a beginning"),
            pytest.param("020141 820142", "out of order", id="a beginning without an end"),
            pytest.param("827e 000b", "a WebSocket frame of 11 bytes", id="too long"),
            pytest.param("827f 8000000000000000", "more than 10 are not taken", id="longer than anything"),
            ("0206 414141414141 0006 414141414141", "message is longer than 10 bytes"),
        ],
    )
    def test_an_invalid_frame_is_rejected(self, data: str, text: str) -> None:
        with pytest.raises(PeerError, match=text):
            list(FrameReader(limit=10).feed(bytes.fromhex(data)))
