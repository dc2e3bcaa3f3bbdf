"""When keepers are asked what their commands use, and when those who look have their answer."""

from __future__ import annotations

import time

import pytest

from mpirt.rsh.switchboard.board import Survey
from mpirt.rsh.watches.loop import Loop


class Held:
    """A command whose keeper answers when a test says so."""

    def __init__(self, *, is_awaited: bool = True) -> None:
        self.is_awaited = is_awaited
        self.asked = 0

    def ask_usage(self) -> bool:
        self.asked += 1
        return self.is_awaited


class Scene:
    """A loop with a survey, and who has been told that it is over."""

    def __init__(self, *commands: Held) -> None:
        self.loop = Loop()
        self.survey = Survey(self.loop)
        self.commands = commands
        self.told: list[str] = []

    def look(self, who: str) -> None:
        self.survey.begin(self.commands, lambda: self.told.append(who))


@pytest.mark.parametrize("commands", [[], [Held(is_awaited=False)]], ids=["commands", "keepers"])
def test_the_answer_comes_at_once_without(commands: list[Held]) -> None:
    scene = Scene(*commands)
    scene.look("one")
    assert scene.told == []

    scene.loop.turn()

    assert scene.told == ["one"]


def test_the_answer_comes_once_all_keepers_have_answered() -> None:
    scene = Scene(Held(), Held(is_awaited=False), Held())
    scene.look("one")
    scene.loop.turn()
    scene.survey.answered(scene.commands[0])
    assert scene.told == []
    assert scene.survey.timeout() > 0

    scene.survey.answered(scene.commands[2])
    assert scene.survey.timeout() == 0
    scene.loop.turn()

    assert scene.told == ["one"]


def test_a_keeper_that_does_not_answer_is_waited_for_half_a_second() -> None:
    scene = Scene(Held())
    began = time.monotonic()
    scene.look("one")
    while not scene.told:
        scene.loop.turn()

    assert 0.5 <= time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("is_meanwhile", "times"), [(True, 1), (False, 2)], ids=["meanwhile shares it", "later has all asked again"]
)
def test_a_viewer_that_comes(*, is_meanwhile: bool, times: int) -> None:
    scene = Scene(Held())
    scene.look("one")
    scene.loop.turn()
    if not is_meanwhile:
        scene.survey.answered(scene.commands[0])
        scene.loop.turn()
    scene.look("another")
    while "another" not in scene.told:
        scene.survey.answered(scene.commands[0])
        scene.loop.turn()

    assert scene.told == ["one", "another"]
    assert scene.commands[0].asked == times


def test_a_late_answer_ends_nothing() -> None:
    scene = Scene(Held(), Held())
    scene.look("one")
    while not scene.told:
        scene.loop.turn()
    scene.look("another")
    scene.loop.turn()

    scene.survey.answered(Held())
    scene.survey.answered(scene.commands[0])

    assert scene.survey.timeout() > 0


def test_of_many_keepers_a_few_are_asked_in_each_turn_of_the_loop() -> None:
    scene = Scene(*(Held() for _ in range(120)))
    scene.look("one")
    counts = []
    for _ in range(3):
        scene.loop.turn()
        counts.append(sum(command.asked for command in scene.commands))

    assert counts == [50, 100, 120]
