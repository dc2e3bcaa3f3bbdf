"""The frames between agent and keeper: literal bytes on one side, docs/keeper.md on the other."""

from __future__ import annotations

import pytest

import mpirt.keeper
from mpirt.errors import PeerError
from mpirt.rsh.protocol import keeperframes as frames
from mpirt.rsh.protocol.framing import Frame
from mpirt.rsh.protocol.keeperframes import Kind

NUMBER = b"\x08\x07\x06\x05\x04\x03\x02\x01"
OUT = b"\x25\x02\x00\x00\x07\x00\x00\x00" + NUMBER + b"ab"
ATTACHED = b"\x21\x09\x00\x00\x01\x00\x00\x00\x03" + bytes(7) + b"\x01\x05" + bytes(7)


def only(data: bytes) -> Frame:
    (found,) = frames.reader().feed(data)
    return found


class TestWhatWeSay:
    @pytest.mark.parametrize(
        ("kind", "number"),
        [
            *((Kind.ATTACH, 1), (Kind.CONTROL, 2), (Kind.STDIN, 3), (Kind.STDIN_END, 4)),
            *((Kind.ACK, 5), (Kind.DONE, 6), (Kind.BEAT, 7), (Kind.FENCE, 8)),
            (Kind.USAGE, 9),
        ],
    )
    def test_each_kind_has_its_number(self, kind: Kind, number: int) -> None:
        assert frames.frame(kind, 1) == bytes([number, 0, 0, 0, 1, 0, 0, 0]) + bytes(8)

    def test_a_frame_takes_32_kib(self) -> None:
        assert frames.frame(Kind.STDIN, 1, 0, bytes(32768))[:4] == b"\x03\x00\x80\x00"
        with pytest.raises(ValueError, match="a frame takes 32768 bytes, not 32769"):
            frames.frame(Kind.STDIN, 1, 0, bytes(32769))

    def test_lengths_are_two_numbers(self) -> None:
        assert frames.lengths(1, 2**40) == b"\x01" + bytes(7) + bytes(5) + b"\x01\x00\x00"

    @pytest.mark.parametrize(
        ("control", "expected"),
        [
            (frames.signal_control(10), b"K\x0a"),
            (frames.end_control(15, 1.5), b"E\x0f\xdc\x05\x00\x00"),
            (frames.end_control(15, 1e9), b"E\x0f\xff\xff\xff\xff"),
        ],
        ids=["a signal", "a signal and a grace in milliseconds", "the longest grace"],
    )
    def test_a_control_is_a_letter_and_numbers(self, control: bytes, expected: bytes) -> None:
        assert control == expected


class TestStart:
    def test_start_is_laid_out_as_the_keeper_reads_it(self) -> None:
        start = frames.start(
            [b"/bin/sh", b"-c", b"x"],
            {"A": b"\xff"},
            lease=180,
            grace=0.25,
            has_stdin=True,
            fence=frames.Fence("job", attempt=258, launcher=2**63),
        )

        head = b"\x20\xbf\x02\x00" + b"\xfa\x00\x00\x00" + b"\x01"
        claim = b"\x02\x01" + bytes(6) + bytes(7) + b"\x80"
        assert start == head + claim + b"\x03\x00\x01\x00" + b"job\0/bin/sh\0-c\0x\0A=\xff\0"

    def test_start_without_anything_but_a_program_is_as_short_as_it_gets(self) -> None:
        start = frames.start([b"x"], {}, lease=0, grace=0, has_stdin=False, fence=frames.Fence())

        assert start == bytes(4 + 4 + 1 + 8 + 8) + b"\x01\x00\x00\x00" + b"\0x\0"

    @pytest.mark.parametrize(
        ("length", "parts"),
        [
            (0, [(b"S", 0)]),
            (32767, [(b"S", 32767)]),
            (32768, [(b"s", 32767), (b"S", 1)]),
            (2 * 32767, [(b"s", 32767), (b"S", 32767)]),
            (70000, [(b"s", 32767), (b"s", 32767), (b"S", 4466)]),
        ],
    )
    def test_start_goes_in_as_many_parts_as_it_takes(self, length: int, parts: list[tuple[bytes, int]]) -> None:
        start = bytes(at % 251 for at in range(length))

        controls = list(frames.start_controls(start))

        assert [(control[:1], len(control) - 1) for control in controls] == parts
        assert b"".join(control[1:] for control in controls) == start


class TestWhatTheKeeperSays:
    @pytest.mark.parametrize(
        ("number", "kind"),
        [
            *((33, Kind.ATTACHED), (34, Kind.STARTED), (35, Kind.TAKEN), (36, Kind.CONTROLLED), (37, Kind.OUT)),
            *((38, Kind.ERR), (39, Kind.EXIT), (40, Kind.ANSWER), (41, Kind.FAILED)),
            (42, Kind.USED),
        ],
    )
    def test_each_kind_has_its_number(self, number: int, kind: Kind) -> None:
        assert only(bytes([number, 0, 0, 0, 1, 0, 0, 0]) + bytes(8)) == Frame(kind, 1, 0, b"")

    def test_a_frame_has_all_its_parts(self) -> None:
        assert only(OUT) == Frame(Kind.OUT, 7, 0x0102030405060708, b"ab")

    @pytest.mark.parametrize(
        ("header", "said"),
        [
            pytest.param(b"\x01\0\0\0", "type 1, 0 bytes", id="a type of the agent's"),
            pytest.param(b"\x20\0\0\0", "type 32, 0 bytes", id="no type"),
            pytest.param(b"\x25\x01\x80\0", "type 37, 32769 bytes", id="a payload that is too long"),
        ],
    )
    def test_an_invalid_frame_is_refused_by_its_header(self, header: bytes, said: str) -> None:
        with pytest.raises(PeerError) as error:
            list(frames.reader().feed(OUT + header + bytes(12)))

        assert str(error.value) == f"invalid frame from the keeper: {said}"

    def test_attached_tells_what_was_done(self) -> None:
        assert frames.read_attached(only(ATTACHED)) == (3, 5)

    @pytest.mark.parametrize(("byte", "flag"), [(b"\0", False), (b"\1", True)])
    def test_a_flag_is_a_byte(self, byte: bytes, flag: bool) -> None:  # noqa: FBT001
        assert frames.read_flag(Frame(Kind.STARTED, 1, 77, byte)) is flag

    @pytest.mark.parametrize(
        ("words", "code", "left_open"),
        [
            (b"\0\7\0\0", 7, False),
            (b"\0\xff\1\0", 255, True),
            (b"\1\x09\0\0", 137, False),
            (b"\1\xff\0\0", 255, False),
        ],
    )
    def test_exit_tells_how_and_how_much(self, words: bytes, code: int, left_open: bool) -> None:  # noqa: FBT001
        payload = words + b"\x05" + bytes(7) + b"\x00\x01" + bytes(6)

        exit_ = frames.Exit(code, frames.EndedBy.ITSELF, left_open, 5, 256)
        assert frames.read_exit(Frame(Kind.EXIT, 1, 0, payload)) == exit_

    @pytest.mark.parametrize("by", frames.EndedBy)
    def test_exit_tells_who_has_ended_the_command(self, by: frames.EndedBy) -> None:
        payload = bytes([0, 0, 0, by.value]) + bytes(16)

        assert frames.read_exit(Frame(Kind.EXIT, 1, 0, payload)).by is by

    def test_an_exit_by_an_unknown_cause_is_refused(self) -> None:
        with pytest.raises(PeerError, match="the keeper's EXIT says that 4 has ended the command"):
            frames.read_exit(Frame(Kind.EXIT, 1, 0, b"\0\0\0\4" + bytes(16)))

    @pytest.mark.parametrize("size", [0, 2])
    def test_a_payload_of_another_size_is_refused(self, size: int) -> None:
        with pytest.raises(PeerError, match=f"the keeper's STARTED has {size} bytes, not 1"):
            frames.read_flag(Frame(Kind.STARTED, 1, 77, bytes(size)))

    @pytest.mark.parametrize(
        ("payload", "usage"),
        [
            (b"\x40\x42\x0f" + bytes(5) + b"\x00\x10" + bytes(6) + b"\x03\0\0\0", frames.Usage(1.0, 4096, 3)),
            (b"\x10\x27" + bytes(18), frames.Usage(0.01, 0, 0)),
            (bytes(20), None),
        ],
        ids=["a time, a size and a number", "a command that has ended", "not known"],
    )
    def test_usage_is_read(self, payload: bytes, usage: frames.Usage | None) -> None:
        assert frames.read_usage(Frame(Kind.USED, 1, 0, payload)) == usage


def test_the_protocols_number_is_the_files() -> None:
    assert frames.PROTOCOL == mpirt.keeper.PROTOCOL
