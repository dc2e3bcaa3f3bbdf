"""The exec channel protocol: literal messages on one side, events on the other."""

from __future__ import annotations

import json

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.request.channels import (
    Channels,
    ExitedWith,
    Failed,
    Output,
    Status,
    Succeeded,
    joined,
    stdin_messages,
)


class TestOutput:
    def test_messages_of_one_stream_that_follow_each_other_are_joined(self) -> None:
        messages = [b"\1a", b"\1b", b"\2c", b"\1", b"\1d", b"\3e", b"\3f", b"", b"\2g"]

        assert list(joined(messages)) == [b"\1ab", b"\2c", b"\1d", b"\3e", b"\3f", b"", b"\2g"]

    def test_the_first_byte_names_the_stream(self) -> None:
        channels = Channels()

        assert channels.receive(b"\x01out") == Output(1, b"out")
        assert channels.receive(b"\x02err") == Output(2, b"err")

    @pytest.mark.parametrize("message", [b"", b"\x01", b"\x02", b"\x03", b"\x00"])
    def test_empty_messages_say_nothing(self, message: bytes) -> None:
        assert Channels().receive(message) is None

    @pytest.mark.parametrize("message", [b"\x00in", b"\x04{}", b"\x05?", b"\xff\x01", b"HTTP/1.1 200"])
    def test_an_unknown_channel_says_nothing(self, message: bytes) -> None:
        assert Channels().receive(message) is None


class TestStdin:
    def test_it_goes_out_on_channel_0(self) -> None:
        assert list(stdin_messages(b"abc")) == [b"\x00abc"]

    def test_nothing_is_no_message(self) -> None:
        assert list(stdin_messages(b"")) == []

    def test_much_goes_out_in_messages_of_32_kilobytes(self) -> None:
        data = bytes(range(256)) * 400

        messages = list(stdin_messages(data))

        assert [len(message) for message in messages] == [32768, 32768, 32768, 4100]
        assert b"".join(message[1:] for message in messages) == data


EXITED = "NonZeroExitCode"


def failure(reason: object, message: object = "", details: object = None) -> bytes:
    body = {"status": "Failure", "reason": reason, "message": message, "details": details}
    return b"\x03" + json.dumps(body).encode()


def causes(*found: object) -> dict[str, object]:
    return {"causes": list(found)}


def code(text: object) -> dict[str, object]:
    return {"reason": "ExitCode", "message": text}


class TestTheStatus:
    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            pytest.param(b'\x03{"metadata":{},"status":"Success"}', Succeeded(), id="success"),
            pytest.param(b'\x03{"status":"Success"}', Succeeded(), id="success without metadata"),
            pytest.param(b'\x03{"kind":"Status","status":"Success"}', Succeeded(), id="success in other words"),
            pytest.param(failure(EXITED, details=causes(code("42"))), ExitedWith(42), id="exit code"),
            pytest.param(
                failure(EXITED, details=causes(7, {"message": "3"}, code("255"))),
                ExitedWith(255),
                id="exit code among others",
            ),
            pytest.param(
                failure("InternalError", "error executing\ncommand", causes({"message": "1"})),
                Failed("InternalError", "error executing command"),
                id="free text in a cause",
            ),
            pytest.param(
                failure("InternalError", details=causes(code("1"))),
                Failed("InternalError", ""),
                id="a code with another reason",
            ),
            pytest.param(failure(EXITED, "m"), Failed(EXITED, "m"), id="no details"),
            pytest.param(failure(EXITED, details=[]), Failed(EXITED, ""), id="odd details"),
            pytest.param(failure(EXITED, details={"causes": "x"}), Failed(EXITED, ""), id="odd causes"),
            pytest.param(failure(5, None), Failed("", ""), id="odd fields"),
        ],
    )
    def test_it_is_read_strictly(self, message: bytes, expected: Status) -> None:
        assert Channels().receive(message) == expected

    @pytest.mark.parametrize("text", ["0", "-1", "256", "1.0", " 1", "", "one", "\u0661", 7, None])
    def test_only_a_code_that_a_process_can_fail_with_is_one(self, text: object) -> None:
        assert Channels().receive(failure(EXITED, details=causes(code(text)))) == Failed(EXITED, "")

    @pytest.mark.parametrize("body", [b"[]", b"{}", b"7", b'{"status":"success"}', b'{"status":null}'])
    def test_an_object_that_is_no_status_violates_the_protocol(self, body: bytes) -> None:
        with pytest.raises(PeerError, match="neither Success nor Failure"):
            Channels().receive(b"\x03" + body)

    def test_it_may_come_in_parts(self) -> None:
        channels = Channels()

        assert channels.receive(b'\x03{"status":') is None
        assert channels.receive(b'\x03"Success"}') == Succeeded()

    def test_it_may_not_come_twice(self) -> None:
        channels = Channels()
        channels.receive(b'\x03{"status":"Success"}')

        with pytest.raises(PeerError, match="the session's status came twice"):
            channels.receive(b'\x03{"status":"Success"}')

    def test_plain_text_is_no_status(self) -> None:
        assert Channels().receive(b"\x03command terminated with exit code 1") is None

    def test_it_may_not_go_on_for_ever(self) -> None:
        channels = Channels()
        channels.receive(b"\x03[" + b"1," * 16000)
        channels.receive(b"\x03" + b"1," * 16000)

        with pytest.raises(PeerError, match="longer than 65536 bytes"):
            channels.receive(b"\x03" + b"1," * 16000)

    def test_a_status_that_is_nested_too_deeply_is_not_read(self) -> None:
        channels = Channels()

        assert channels.receive(b"\x03" + b"[" * 60000) is None
