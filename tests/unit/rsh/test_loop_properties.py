"""
Whatever happens to descriptors, the loop wakes exactly who a plain poll() over all ports would wake.

The model asks every port in every turn; the loop only the groups that something has happened to.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpirt.rsh.watches.loop import FOR_EVER, Loop, Waits

GROUPS = 3
_BOTH = select.POLLIN | select.POLLOUT


class End:
    """One end of a pipe, as a port, and as a clock."""

    def __init__(self, group: int) -> None:
        self.group = group
        self.fd = self.peer = -1
        self.wants = select.POLLIN
        self.due = FOR_EVER
        self.next: Step | None = None

    def waits(self) -> Waits:
        return self.fd, self.wants, self.due

    def timeout(self) -> float:
        return self.due

    def is_ready(self) -> bool:
        if self.fd < 0 or not self.wants:
            return False
        poll = select.poll()
        poll.register(self.fd, self.wants)
        return bool(poll.poll(0))


class World:
    """A loop with ports and clocks on it, and who has acted."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.ports = [End(number % GROUPS) for number in range(6)]
        self.clocks = [End(number) for number in range(GROUPS)]
        self.added: set[End] = set()
        self.acted: list[End] = []
        self.also_open: list[int] = []
        # No turn waits.
        waker = End(GROUPS)
        waker.due = 0.0
        self.loop.add_clock(waker, lambda: None, group=GROUPS)
        for clock in self.clocks:
            self.add_clock(clock)
        for port in self.ports:
            reopen(self, port)
            add(self, port)

    def add_clock(self, clock: End) -> None:
        self.loop.add_clock(clock, partial(self.acted.append, clock), group=clock.group)

    def act(self, port: End) -> None:
        self.acted.append(port)
        step, port.next = port.next, None
        if step is not None:
            step(self, port)

    def turn(self) -> None:
        """Who is ready or due acts, once, and clocks come last."""
        ports = [port for port in self.ports if port in self.added and (port.is_ready() or port.due <= 0)]
        clocks = [clock for clock in self.clocks if clock.due <= 0]
        self.acted.clear()
        self.loop.turn()
        first, last = self.acted[: len(ports)], self.acted[len(ports) :]
        assert (set(first), set(last)) == (set(ports), set(clocks))
        assert len(last) == len(clocks)

    def close(self) -> None:
        for port in self.ports:
            shut(self, port)
        for fd in self.also_open:
            os.close(fd)


Step = Callable[[World, End], None]


def add(world: World, port: End) -> None:
    world.added.add(port)
    world.loop.add(port, partial(world.act, port), group=port.group)


def remove(world: World, port: End) -> None:
    world.added.discard(port)
    world.loop.remove(port)


def shut(_world: World, port: End) -> None:
    for fd in {port.fd, port.peer} - {-1}:
        os.close(fd)
    port.fd = port.peer = -1


def shut_with_a_copy(world: World, port: End) -> None:
    """Close it, but not the last descriptor of its file."""
    if port.fd >= 0:
        world.also_open.append(os.dup(port.fd))
    shut(world, port)


def reopen(world: World, port: End) -> None:
    """Another file; mostly with the same number, or with one that another port had."""
    shut(world, port)
    port.fd, port.peer = os.pipe()


def reopen_with_a_copy(world: World, port: End) -> None:
    shut_with_a_copy(world, port)
    reopen(world, port)


def reopen_to_write(world: World, port: End) -> None:
    shut(world, port)
    port.peer, port.fd = os.pipe()


def fill(_world: World, port: End) -> None:
    if port.peer >= 0:
        with suppress(OSError):
            os.write(port.peer, b"x")


def hang_up(_world: World, port: End) -> None:
    if port.peer >= 0:
        os.close(port.peer)
        port.peer = -1


def drain(_world: World, port: End) -> None:
    if port.fd >= 0 and port.is_ready():
        with suppress(OSError):
            os.read(port.fd, 100)


def wants(what: int) -> Step:
    def step(_world: World, port: End) -> None:
        port.wants = what

    return step


def due(seconds: float) -> Step:
    def step(_world: World, port: End) -> None:
        port.due = seconds

    return step


# What a port may do in its act, or somebody else to it.
OWN: st.SearchStrategy[Step] = st.one_of(
    st.sampled_from([shut, shut_with_a_copy, reopen, reopen_with_a_copy, reopen_to_write, drain]),
    st.builds(wants, st.sampled_from([0, select.POLLIN, select.POLLOUT, _BOTH])),
    st.builds(due, st.sampled_from([0.0, 60.0, FOR_EVER])),
)
STEPS: st.SearchStrategy[Step] = OWN | st.sampled_from([fill, hang_up, add, remove])


def happens(number: int, step: Step) -> Callable[[World], None]:
    def happen(world: World) -> None:
        port = world.ports[number]
        step(world, port)
        if step not in (fill, hang_up):
            world.loop.touch(port.group)

    return happen


def is_done_by_its_act(number: int, step: Step) -> Callable[[World], None]:
    def happen(world: World) -> None:
        world.ports[number].next = step

    return happen


def is_due(number: int, seconds: float) -> Callable[[World], None]:
    def happen(world: World) -> None:
        world.clocks[number].due = seconds
        world.loop.touch(number)

    return happen


def is_dropped(group: int) -> Callable[[World], None]:
    def happen(world: World) -> None:
        world.loop.drop(group)
        world.added -= {port for port in world.ports if port.group == group}
        world.add_clock(world.clocks[group])

    return happen


def turns(world: World) -> None:
    world.turn()


def exchanged(world: World) -> None:
    one, two = world.ports[:2]
    one.fd, one.peer, two.fd, two.peer = two.fd, two.peer, one.fd, one.peer
    for port in (one, two):
        world.loop.touch(port.group)


NUMBERS = st.integers(0, 5)
HAPPENINGS: st.SearchStrategy[Callable[[World], None]] = st.one_of(
    st.sampled_from([turns, exchanged]),
    st.builds(happens, NUMBERS, STEPS),
    st.builds(is_done_by_its_act, NUMBERS, OWN | st.just(remove)),
    st.builds(is_due, st.integers(0, GROUPS - 1), st.sampled_from([0.0, 60.0, FOR_EVER])),
    st.builds(is_dropped, st.integers(0, GROUPS - 1)),
)


def is_watched(happenings: list[Callable[[World], None]]) -> None:
    """Have it all happen; each turn compares who acts."""
    world = World()
    try:
        for happening in happenings:
            happening(world)
        for _ in range(3):
            world.turn()
    finally:
        world.close()


FILLED = happens(0, fill)
OTHER_FILLED = happens(1, fill)


@pytest.mark.parametrize(
    "happenings",
    [
        pytest.param([OTHER_FILLED, happens(2, due(0.0)), turns], id="some are ready or due, others not"),
        pytest.param([happens(0, wants(0)), FILLED, turns], id="what is there is not wanted"),
        pytest.param([happens(0, hang_up), turns], id="a peer goes away"),
        pytest.param([happens(0, hang_up), happens(0, wants(0)), turns], id="and is not wanted"),
        pytest.param(
            [FILLED, is_done_by_its_act(0, reopen), turns, turns, FILLED], id="another file has the same number"
        ),
        pytest.param(
            [FILLED, is_done_by_its_act(0, reopen_with_a_copy), turns, turns, FILLED],
            id="another file has the same number, and the first is still open elsewhere",
        ),
        pytest.param(
            [FILLED, is_done_by_its_act(0, shut), turns, happens(1, reopen), turns, OTHER_FILLED],
            id="a number moves to another group",
        ),
        pytest.param(
            [FILLED, is_done_by_its_act(0, shut_with_a_copy), turns, happens(1, reopen), turns, OTHER_FILLED],
            id="a number moves to another group, and its first file is still open elsewhere",
        ),
        pytest.param(
            [FILLED, turns, happens(0, remove), happens(0, shut), happens(1, reopen), turns, OTHER_FILLED],
            id="a number is used again after its port was removed",
        ),
        pytest.param([FILLED, turns, happens(0, shut), happens(0, remove)], id="a port is closed, then removed"),
        pytest.param([turns, exchanged, FILLED, turns], id="two groups exchange their numbers"),
    ],
)
def test_a_turn_wakes_as_poll_does_when(happenings: list[Callable[[World], None]]) -> None:
    is_watched(happenings)


@given(st.lists(HAPPENINGS, max_size=40))
def test_who_acts_is_who_poll_would_wake(happenings: list[Callable[[World], None]]) -> None:
    is_watched(happenings)
