"""How much output may wait, all commands together."""

from __future__ import annotations

from mpirt.rsh.switchboard.outbox import Budget


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
