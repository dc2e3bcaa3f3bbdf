"""Whose turn it is on a loop: who is ready, then who is due, and clocks after all of them."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator

import pytest

from mpirt.rsh.ports.loop import FOR_EVER, Loop


class Pipe:
    """A port that reads a pipe."""

    def __init__(self) -> None:
        self.out, self._in = os.pipe()
        self.wants = select.POLLIN
        self.due = FOR_EVER

    def fileno(self) -> int:
        return self.out

    def timeout(self) -> float:
        return self.due

    def fill(self) -> None:
        os.write(self._in, b"x")

    def close(self) -> None:
        os.close(self.out)
        os.close(self._in)


@pytest.fixture
def pipe() -> Iterator[Callable[[], Pipe]]:
    made: list[Pipe] = []

    def make() -> Pipe:
        made.append(Pipe())
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_only_who_is_ready_or_due_acts(pipe: Callable[[], Pipe]) -> None:
    ready, due, neither = pipe(), pipe(), pipe()
    acted: list[str] = []
    loop = Loop()
    for port, name in ((neither, "neither"), (ready, "ready"), (due, "due")):
        loop.add(port, lambda name=name: acted.append(name))  # type: ignore[misc]
    ready.fill()
    due.due = 0.0

    loop.turn()

    assert acted == ["ready", "due"]


def test_who_wants_nothing_is_left_alone(pipe: Callable[[], Pipe]) -> None:
    unwanted, due = pipe(), pipe()
    acted: list[str] = []
    loop = Loop()
    loop.add(unwanted, lambda: acted.append("unwanted"))
    loop.add(due, lambda: acted.append("due"))
    unwanted.fill()
    unwanted.wants = 0
    due.due = 0.001

    loop.turn()

    assert acted == []
    due.due = 0.0
    loop.turn()
    assert acted == ["due"]


def test_a_clock_comes_after_what_has_come_in_time(pipe: Callable[[], Pipe]) -> None:
    clock, port = pipe(), pipe()
    acted: list[str] = []
    loop = Loop()
    loop.add_clock(clock, lambda: acted.append("clock"))
    loop.add(port, lambda: acted.append("port"))
    clock.due = 0.0
    port.fill()

    loop.turn()

    assert acted == ["port", "clock"]


def test_who_is_removed_in_a_turn_does_not_act_in_it(pipe: Callable[[], Pipe]) -> None:
    first, second = pipe(), pipe()
    acted: list[str] = []
    loop = Loop()

    def remove() -> None:
        acted.append("first")
        loop.remove(second)

    loop.add(first, remove)
    loop.add(second, lambda: acted.append("second"))
    first.fill()
    second.fill()

    loop.turn()

    assert acted == ["first"]
