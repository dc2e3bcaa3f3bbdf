"""Whose turn it is to dial."""

from __future__ import annotations

import pytest

from mpirt.rsh.switchboard.gate import Gate
from mpirt.rsh.watches.loop import FOR_EVER


class Crowd:
    """Some who want to dial, and the order in which they began."""

    def __init__(self, most: int) -> None:
        self.now = 1000.0
        self.gate = Gate(lambda: self.now, most)
        self.begun = ""

    def do(self, moves: str) -> None:
        """Letters come, small ones for the first time; -a leaves; |5: a pause of 5 s; @5: 5 s after the start."""
        for move in moves.split():
            match move[0]:
                case "-":
                    self.gate.leave(move[1])
                case "|":
                    self.gate.pause(float(move[1:]))
                case "@":
                    self.now = 1000.0 + float(move[1:])
                    self.gate.let_in()
                case who:
                    self.gate.enter(who, lambda who=who: self._begin(who), is_first=who.islower())  # type: ignore[misc]

    def _begin(self, who: str) -> None:
        self.begun += who


@pytest.mark.parametrize(
    ("most", "moves", "begun", "waiting"),
    [
        pytest.param(2, "a b c", "ab", "c", id="as many as may begin at once"),
        pytest.param(1, "a b c -a", "ab", "c", id="the next one begins when one leaves"),
        pytest.param(1, "a b a", "aa", "b", id="one that is inside begins again at once"),
        pytest.param(1, "a b c -b -a", "ac", "", id="one that waits may leave"),
        pytest.param(1, "a b c -a -a", "ab", "c", id="one that leaves twice lets in one"),
        pytest.param(1, "a b c b -a", "ab", "c", id="one that waits and comes again keeps its place"),
        pytest.param(1, "a b R -a", "aR", "b", id="one that runs already goes before new ones"),
        pytest.param(2, "|5 a b @4.9", "", "ab", id="a pause holds up new ones"),
        pytest.param(1, "a b |5 -a", "a", "b", id="a pause holds up those that wait already"),
        pytest.param(1, "|5 a b @5", "a", "b", id="a pause ends"),
        pytest.param(1, "|5 a R", "R", "a", id="a pause is not for one that runs already"),
        pytest.param(1, "|5 |3 a @4", "", "a", id="a pause is not shortened by another one"),
    ],
)
def test_commands_begin_when_it_is_their_turn(most: int, moves: str, begun: str, waiting: str) -> None:
    crowd = Crowd(most)

    crowd.do(moves)

    assert crowd.begun == begun
    assert [who for who in "abcR" if crowd.gate.waits(who)] == list(waiting)


def test_one_that_waits_and_comes_again_begins_with_its_newer_wish() -> None:
    crowd = Crowd(1)
    crowd.do("a b")
    crowd.gate.enter("b", lambda: crowd.do("x"), is_first=True)

    crowd.do("-a -b")

    assert crowd.begun == "ax"


def test_a_thousand_that_end_as_they_begin_are_not_nested() -> None:
    gate = Gate(lambda: 0.0, 1)
    begun: list[int] = []
    gate.enter("a", lambda: None, is_first=True)

    def begin(number: int) -> None:
        begun.append(number)
        gate.leave(number)

    for number in range(5000):
        gate.enter(number, lambda number=number: begin(number), is_first=True)  # type: ignore[misc]
    gate.leave("a")

    assert begun == list(range(5000))


def test_a_pause_that_is_over_is_not_due_any_more_though_nobody_may_begin() -> None:
    crowd = Crowd(1)
    crowd.do("a b |5")
    assert crowd.gate.timeout() == 5.0

    crowd.do("@5")

    assert (crowd.begun, crowd.gate.timeout()) == ("a", FOR_EVER)
