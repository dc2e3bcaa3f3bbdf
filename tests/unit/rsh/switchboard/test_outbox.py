"""What waits for an agent, in which order it goes there, and how much may wait for all commands together."""

from __future__ import annotations

import struct

import pytest

from mpirt.errors import PeerError
from mpirt.rsh.session.task import Record
from mpirt.rsh.switchboard.outbox import Budget, Outbox

KEEP, OUT, ERR, SAY = 3, 4, 5, 6
WINDOW = 256 * 1024
PIECE = 64 * 1024
RECORD = Record("w-0", "nonce", "worker")


def sent(outbox: Outbox) -> list[tuple[int, bytes]]:
    """Everything that can be sent now, sent."""
    data, found = bytes(outbox.unsent), []
    while data:
        (first,) = struct.unpack_from("<I12x", data)
        end = 16 + (first >> 8)
        found.append((first & 255, data[16:end]))
        data = data[end:]
    outbox.sent(len(outbox.unsent))
    return found


def size(found: list[tuple[int, bytes]], *kinds: int) -> int:
    return sum(len(payload) for kind, payload in found if kind in kinds)


class TestOutput:
    def test_goes_at_once(self) -> None:
        outbox = Outbox()
        outbox.write(1, b"out")
        outbox.write(2, b"err")

        assert sent(outbox) == [(OUT, b"out"), (ERR, b"err")]
        assert (outbox.waiting, outbox.held, outbox.done) == (3, 0, (0, 0))

    def test_is_cut_into_frames(self) -> None:
        outbox = Outbox()
        outbox.write(1, b"x" * (PIECE + 1))

        assert [len(payload) for _, payload in sent(outbox)] == [PIECE, 1]

    def test_stops_at_the_window_of_its_stream(self) -> None:
        outbox = Outbox()
        outbox.write(1, b"x" * (WINDOW + 100))
        outbox.write(2, b"y")

        found = sent(outbox)

        assert (size(found, OUT), size(found, ERR)) == (WINDOW, 1)
        assert (outbox.waiting, outbox.held) == (WINDOW + 100, 100)

    def test_goes_on_as_far_as_the_agent_has_written(self) -> None:
        outbox = Outbox()
        outbox.write(1, b"x" * (WINDOW + 100))
        sent(outbox)

        outbox.written(60, 0, 0)

        assert size(sent(outbox), OUT) == 60
        assert outbox.done == (60, 0)

    def test_begins_where_another_process_has_ended(self) -> None:
        outbox = Outbox((1000 * WINDOW, 5))
        outbox.write(1, b"more")
        assert sent(outbox) == []

        outbox.written(1000 * WINDOW, 5, 0)

        assert sent(outbox) == [(OUT, b"more")]

    def test_that_is_not_sent_yet_is_held(self) -> None:
        outbox = Outbox()
        outbox.write(1, b"12345")

        assert outbox.held == 16 + 5
        assert not outbox.sent(18)
        assert bytes(outbox.unsent) == b"345"

    def test_never_gets_less(self) -> None:
        outbox = Outbox()
        outbox.write(1, b"12345")
        sent(outbox)
        outbox.written(4, 0, 0)
        outbox.written(2, 0, 0)

        assert outbox.done == (4, 0)


class TestLines:
    def test_stand_in_their_place_in_stderr(self) -> None:
        outbox = Outbox()
        outbox.write(2, b"a")
        outbox.line("two\nwords")
        outbox.write(2, b"b")

        assert sent(outbox) == [(ERR, b"a"), (SAY, b"mpirt-rsh: two words\n"), (ERR, b"b")]

    def test_are_waited_for_until_they_are_written(self) -> None:
        outbox = Outbox()
        outbox.line("one")
        outbox.line("two")
        sent(outbox)
        outbox.written(0, 0, 1)
        assert outbox.waiting == len("mpirt-rsh: two\n")

        outbox.written(0, 0, 2)

        assert outbox.waiting == 0

    def test_end_with_a_newline_however_long_they_are(self) -> None:
        outbox = Outbox()
        outbox.line("x" * 100_000)

        ((kind, line),) = sent(outbox)
        assert (kind, len(line), line[-1:]) == (SAY, PIECE, b"\n")

    def test_keep_to_the_window_and_go_whole(self) -> None:
        outbox = Outbox()
        outbox.write(2, b"x" * (WINDOW - 10))
        outbox.line("longer than that")
        assert size(sent(outbox), SAY) == 0

        outbox.written(0, 10, 0)
        assert size(sent(outbox), SAY) == 0
        outbox.written(0, 50, 0)

        assert sent(outbox) == [(SAY, b"mpirt-rsh: longer than that\n")]

    def test_that_wait_behind_output_leave_its_room_alone(self) -> None:
        outbox = Outbox()
        outbox.write(2, b"x" * (WINDOW + 1))
        for _ in range(8):
            outbox.line("y" * 60_000)
        sent(outbox)

        outbox.written(0, WINDOW, 0)

        found = sent(outbox)
        assert (size(found, ERR), len(found)) == (1, 5)
        assert outbox.held == 4 * (60_000 + len("mpirt-rsh: \n"))


class TestTheRecord:
    def test_is_safe_when_it_is_sent(self) -> None:
        outbox = Outbox()
        outbox.keep(RECORD)
        length = len(outbox.unsent)

        assert outbox.is_keeping
        assert not outbox.sent(length - 1)
        assert outbox.sent(1)
        assert not outbox.is_keeping
        assert not outbox.sent(0)

    def test_comes_behind_all_output(self) -> None:
        outbox = Outbox()
        outbox.write(1, b"x" * (WINDOW + 5))
        outbox.keep(RECORD)
        assert not outbox.sent(len(outbox.unsent))

        outbox.written(5, 0, 0)

        assert [kind for kind, _ in sent(outbox)] == [OUT, KEEP]

    def test_is_replaced_by_a_later_one(self) -> None:
        outbox = Outbox()
        outbox.write(1, b"x" * (WINDOW + 5))
        outbox.keep(RECORD)
        outbox.keep(None)
        sent(outbox)
        outbox.written(5, 0, 0)

        assert [found for found in sent(outbox) if found[0] == KEEP] == [(KEEP, b"null")]


def test_frames_that_are_no_output_go_at_once() -> None:
    outbox = Outbox()
    outbox.write(1, b"x" * (2 * WINDOW))
    sent(outbox)

    outbox.say(b"frame")

    assert bytes(outbox.unsent) == b"frame"


@pytest.mark.parametrize("counts", [(6, 0, 0), (0, 1, 0), (0, 0, 2)], ids=["stdout", "stderr", "lines"])
def test_an_agent_that_has_written_more_than_it_was_sent_breaks_the_rules(counts: tuple[int, int, int]) -> None:
    outbox = Outbox()
    outbox.write(1, b"12345")
    outbox.line("one")

    with pytest.raises(PeerError, match="written more than it was sent"):
        outbox.written(*counts)


class Readers:
    """A budget of 100 bytes, 10 for each in any case, and who was told to go on."""

    def __init__(self) -> None:
        self.budget = Budget(limit=100, share=10)
        self.told: list[str] = []

    def may_be_read(self, name: str) -> bool:
        return self.budget.may_be_read(name, lambda: self.told.append(name))


def test_all_are_read_up_to_the_limit() -> None:
    readers = Readers()
    readers.budget.holds("a", 90)
    readers.budget.holds("b", 10)

    assert readers.budget.total == 100
    assert readers.may_be_read("a")
    assert readers.may_be_read("b")


def test_beyond_the_limit_those_are_not_read_that_have_their_share_waiting() -> None:
    readers = Readers()
    readers.budget.holds("a", 92)
    readers.budget.holds("b", 9)

    assert [readers.may_be_read(name) for name in "abc"] == [False, True, True]


def test_who_is_stopped_is_told_when_there_is_room_for_a_share() -> None:
    readers = Readers()
    readers.budget.holds("a", 50)
    readers.budget.holds("b", 60)
    assert not readers.may_be_read("a")

    readers.budget.holds("b", 41)
    assert readers.told == []
    readers.budget.holds("b", 40)

    assert readers.told == ["a"]
    assert readers.may_be_read("a")


def test_who_is_stopped_is_told_when_their_own_share_is_free() -> None:
    readers = Readers()
    readers.budget.holds("a", 150)
    readers.budget.holds("b", 20)
    assert not readers.may_be_read("b")

    readers.budget.holds("b", 15)
    assert readers.told == []
    readers.budget.holds("b", 9)

    assert readers.told == ["b"]


def test_who_asks_again_while_stopped_waits_for_the_room_too() -> None:
    readers = Readers()
    readers.budget.holds("a", 50)
    readers.budget.holds("b", 60)
    assert not readers.may_be_read("a")
    readers.budget.holds("b", 45)

    assert not readers.may_be_read("a")
    readers.budget.holds("b", 35)
    assert readers.may_be_read("a")


def test_who_ends_makes_room_and_is_told_nothing() -> None:
    readers = Readers()
    readers.budget.holds("a", 50)
    readers.budget.holds("b", 60)
    assert not readers.may_be_read("a")
    assert not readers.may_be_read("b")

    readers.budget.forget("b")

    assert (readers.told, readers.budget.total) == (["a"], 50)


def test_one_that_fills_the_room_again_stops_the_next() -> None:
    budget = Budget(limit=100, share=10)
    told: list[str] = []

    def fill(name: str) -> None:
        told.append(name)
        budget.holds(name, 90)

    budget.holds("a", 40)
    budget.holds("b", 40)
    budget.holds("c", 40)
    for name in ("a", "b"):
        assert not budget.may_be_read(name, lambda name=name: fill(name))  # type: ignore[misc]

    budget.forget("c")

    assert told == ["a"]
    budget.holds("a", 0)
    assert told == ["a", "b"]
