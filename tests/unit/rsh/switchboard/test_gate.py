"""Whose turn it is to dial."""

from __future__ import annotations

from collections.abc import Callable

from mpirt.rsh.switchboard.gate import Gate

NOON = 1000.0


class Crowd:
    """Some who want to dial, and the order in which they began."""

    def __init__(self, most: int = 2) -> None:
        self.gate = Gate(most)
        self.begun: list[str] = []

    def come(self, *names: str, now: float = NOON, is_first: bool = True) -> None:
        for name in names:
            self.gate.enter(name, self._beginning(name), now, is_first=is_first)

    def _beginning(self, name: str) -> Callable[[], None]:
        return lambda: self.begun.append(name)


def test_as_many_as_may_begin_at_once() -> None:
    crowd = Crowd(2)

    crowd.come("a", "b", "c")

    assert (crowd.begun, crowd.gate.waiting) == (["a", "b"], 1)


def test_the_next_one_begins_when_one_leaves() -> None:
    crowd = Crowd(1)
    crowd.come("a", "b", "c")

    crowd.gate.leave("a", NOON)

    assert (crowd.begun, crowd.gate.waiting) == (["a", "b"], 1)


def test_one_that_is_inside_begins_again_at_once() -> None:
    crowd = Crowd(1)
    crowd.come("a", "b")

    crowd.come("a")

    assert crowd.begun == ["a", "a"]


def test_one_that_waits_may_leave() -> None:
    crowd = Crowd(1)
    crowd.come("a", "b", "c")
    crowd.gate.leave("b", NOON)

    crowd.gate.leave("a", NOON)

    assert crowd.begun == ["a", "c"]


def test_one_that_leaves_twice_lets_in_one() -> None:
    crowd = Crowd(1)
    crowd.come("a", "b", "c")

    crowd.gate.leave("a", NOON)
    crowd.gate.leave("a", NOON)

    assert crowd.begun == ["a", "b"]


def test_who_waits_and_comes_again_keeps_the_place_with_the_newer_wish() -> None:
    crowd = Crowd(1)
    crowd.come("a", "b", "c")
    crowd.gate.enter("b", lambda: crowd.begun.append("newer"), NOON, is_first=True)

    crowd.gate.leave("a", NOON)

    assert crowd.begun == ["a", "newer"]


def test_who_comes_again_goes_before_who_comes_for_the_first_time() -> None:
    crowd = Crowd(1)
    crowd.come("a", "b")
    crowd.come("running", is_first=False)

    crowd.gate.leave("a", NOON)

    assert crowd.begun == ["a", "running"]


def test_a_thousand_that_end_as_they_begin_are_not_nested() -> None:
    gate = Gate(1)
    begun: list[int] = []
    gate.enter("a", lambda: None, NOON, is_first=True)

    def begin(number: int) -> None:
        begun.append(number)
        gate.leave(number, NOON)

    for number in range(5000):
        gate.enter(number, lambda number=number: begin(number), NOON, is_first=True)  # type: ignore[misc]
    gate.leave("a", NOON)

    assert begun == list(range(5000))
    assert gate.waiting == 0


class TestAPause:
    def test_holds_up_who_comes_for_the_first_time(self) -> None:
        crowd = Crowd(2)
        crowd.gate.pause(NOON + 5)

        crowd.come("a", "b")
        crowd.gate.tick(NOON + 4.9)

        assert (crowd.begun, crowd.gate.waiting, crowd.gate.wake) == ([], 2, NOON + 5)

    def test_holds_up_who_waits_already(self) -> None:
        crowd = Crowd(1)
        crowd.come("a", "b")
        crowd.gate.pause(NOON + 5)

        crowd.gate.leave("a", NOON)

        assert crowd.begun == ["a"]

    def test_ends(self) -> None:
        crowd = Crowd(1)
        crowd.gate.pause(NOON + 5)
        crowd.come("a", "b")

        crowd.gate.tick(NOON + 5)

        assert (crowd.begun, crowd.gate.wake) == (["a"], None)

    def test_is_not_for_who_comes_again(self) -> None:
        crowd = Crowd(1)
        crowd.gate.pause(NOON + 5)

        crowd.come("new")
        crowd.come("running", is_first=False)

        assert crowd.begun == ["running"]

    def test_is_not_shortened_by_another_one(self) -> None:
        crowd = Crowd(1)
        crowd.gate.pause(NOON + 5)
        crowd.gate.pause(NOON + 3)

        assert crowd.gate.wake == NOON + 5
