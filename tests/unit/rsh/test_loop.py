"""Whose turn it is on a loop, and what a turn asks: only the groups that something has happened to."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from mpirt.rsh.watches.loop import FOR_EVER, Loop, Waits

Act = Callable[[], object]


class At:
    """A port at some descriptor, or at none; and a clock."""

    def __init__(self, fd: int, wants: int = select.POLLIN) -> None:
        self.fd, self.wants = fd, wants
        self.due = FOR_EVER
        self.asked = 0

    def waits(self) -> Waits:
        return self.fd, self.wants, self.timeout()

    def timeout(self) -> float:
        self.asked += 1
        return self.due


class Pipe(At):
    """A port that reads a pipe."""

    def __init__(self) -> None:
        out, self.into = os.pipe()
        super().__init__(out)

    def fill(self) -> None:
        os.write(self.into, b"x")

    def drain(self) -> None:
        os.read(self.fd, 1)

    def shut(self) -> None:
        os.close(self.fd)
        self.fd = -1

    def close(self) -> None:
        os.close(self.into)
        if self.fd >= 0:
            self.shut()


class Acts:
    """A loop, and who has acted on it."""

    def __init__(self, loop: Loop | None = None) -> None:
        self.loop = loop or Loop()
        self.names: list[str] = []
        self.pipes: list[Pipe] = []
        self._waker = At(-1)

    def by(self, name: str, *acts: Act) -> Callable[[], None]:
        def act() -> None:
            self.names.append(name)
            for each in acts:
                each()

        return act

    def pipe(
        self,
        name: str,
        *acts: Act,
        group: object = None,
        is_full: bool = False,
        first: Callable[[Pipe], None] | None = None,
    ) -> Pipe:
        """A port whose pipe has something to read, or not; `first` is what its act does with it first."""
        made = Pipe()
        self.pipes.append(made)
        if is_full:
            made.fill()
        own = [] if first is None else [partial(first, made)]
        self.loop.add(made, self.by(name, *own, *acts), group=group)
        return made

    def port(self, name: str, *acts: Act, group: object = None, due: float = FOR_EVER) -> At:
        """A port without a descriptor."""
        made = At(-1)
        made.due = due
        self.loop.add(made, self.by(name, *acts), group=group)
        return made

    def clock(self, name: str, *, group: object = None, due: float = FOR_EVER) -> At:
        made = At(-1)
        made.due = due
        self.loop.add_clock(made, self.by(name), group=group)
        return made

    def turn(self) -> list[str]:
        """Who acts in a turn."""
        self.names.clear()
        self.loop.turn()
        return self.names[:]

    def at_once(self) -> list[str]:
        """Who acts in a turn that does not wait."""
        self._waker.due = 0.0
        self.loop.add_clock(self._waker, lambda: None, group=self)
        acted = self.turn()
        self.loop.drop(self)
        return acted


@pytest.fixture
def acts() -> Iterator[Acts]:
    made = Acts()
    yield made
    for pipe in made.pipes:
        pipe.close()


class TestWhoIsAsked:
    def test_a_turn_asks_only_the_group_that_acted(self, acts: Acts) -> None:
        idle = [acts.port("idle", group=number) for number in range(1000)]
        busy = acts.pipe("busy", group="busy", is_full=True)

        assert acts.turn() == ["busy"]
        before = busy.asked
        assert [acts.turn() for _ in range(10)] == [["busy"]] * 10
        assert {port.asked for port in idle} == {1}
        assert busy.asked > before

    def test_a_change_without_a_touch_goes_unnoticed(self, acts: Acts) -> None:
        port = acts.pipe("port", group=1, is_full=True)
        port.wants = 0
        acts.at_once()
        port.wants = select.POLLIN

        assert acts.at_once() == []
        acts.loop.touch(1)
        assert acts.turn() == ["port"]

    def test_a_touch_counts_before_the_next_wait(self, acts: Acts) -> None:
        touched = acts.port("touched", group="touched")

        def touch() -> None:
            touched.due = 0.0
            acts.loop.touch("touched")

        acts.pipe("touching", touch, group="touching", first=Pipe.drain, is_full=True)

        assert [acts.turn(), acts.turn()] == [["touching"], ["touched"]]

    def test_touching_an_unknown_group_is_harmless(self, acts: Acts) -> None:
        acts.loop.touch("unknown")
        acts.loop.drop("unknown")

        assert acts.at_once() == []

    def test_an_act_that_raises_has_its_group_asked_again(self, acts: Acts) -> None:
        acts.pipe("failing", lambda: 1 / 0, first=Pipe.drain, is_full=True)
        due = acts.port("due", lambda: setattr(due, "due", FOR_EVER), group="due", due=0.0)

        with pytest.raises(ZeroDivisionError):
            acts.turn()
        assert acts.turn() == ["due"]


class TestNumbers:
    def test_a_file_that_is_open_elsewhere_is_not_reported_for_ever(self, acts: Acts) -> None:
        port = acts.pipe("port", first=Pipe.shut, is_full=True)
        # As a child that was forked has it.
        copy = os.dup(port.fd)
        assert acts.turn() == ["port"]
        clock = acts.clock("clock", due=0.05)

        # The first turn may be for nothing; the second one waits.
        turns = 0
        begin = time.monotonic()
        while time.monotonic() - begin < clock.due:
            acts.turn()
            turns += 1
        assert turns <= 3
        os.close(copy)

    @pytest.mark.parametrize("group", [1, 2], ids=["of one group", "of two groups"])
    def test_two_ports_may_share_a_number(self, acts: Acts, group: int) -> None:
        reader = acts.pipe("reader", group=1)
        reader.fd, reader.into = reader.into, reader.fd
        writer = At(reader.fd, select.POLLOUT)
        acts.loop.add(writer, acts.by("writer"), group=group)

        assert acts.turn() == ["reader", "writer"]
        acts.loop.remove(reader)
        assert acts.turn() == ["writer"]
        writer.wants = select.POLLIN
        assert acts.at_once() == []


class TestWakingUp:
    def test_a_time_is_waited_for_in_one_turn(self, acts: Acts) -> None:
        end = time.monotonic() + 0.0104
        port = acts.port("port")
        port.timeout = lambda: max(0.0, end - time.monotonic())  # type: ignore[method-assign]

        assert acts.turn() == ["port"]

    @pytest.mark.parametrize(("due", "latest"), [(0.001, 0.3), (0.6, 1.2)], ids=["near", "beyond the grain"])
    def test_only_a_time_beyond_the_grain_is_put_off_to_a_multiple_of_it(self, due: float, latest: float) -> None:
        acts = Acts(Loop(grain=0.5))
        clock = At(-1, 0)
        begin = time.monotonic()
        clock.timeout = lambda: max(0.0, begin + due - time.monotonic())  # type: ignore[method-assign]
        acts.loop.add_clock(clock, acts.by("clock"))

        assert acts.turn() == ["clock"]
        assert due <= time.monotonic() - begin < latest

    def test_the_earliest_time_counts_however_often_times_are_moved(self, acts: Acts) -> None:
        ports = [acts.port(str(number), group=number) for number in range(20)]
        for seconds in range(100):
            for number, port in enumerate(ports):
                port.due = 1000.0 + seconds + number
                acts.loop.touch(number)
            assert acts.at_once() == []
        ports[7].due = 0.0
        acts.loop.touch(7)

        assert acts.turn() == ["7"]

    def test_a_time_that_is_over_for_long_does_not_wait_for_ever(self, acts: Acts) -> None:
        acts.port("port", due=-5.0)

        assert acts.turn() == ["port"]


class TestClocks:
    def test_come_after_the_ports_of_all_groups(self, acts: Acts) -> None:
        acts.clock("clock", group="clock", due=0.0)
        for number in range(50):
            acts.pipe("port", group=number, is_full=True)

        assert acts.turn() == ["port"] * 50 + ["clock"]

    def test_that_become_due_in_a_turn_wait_until_ports_were_heard_again(self, acts: Acts) -> None:
        clock, port = acts.clock("clock", group=1), acts.pipe("port", group=1)

        def take_long() -> None:
            slow.due = FOR_EVER
            clock.due = 0.0
            port.fill()

        slow = acts.port("slow", take_long, group=1, due=0.0)

        assert acts.turn() == ["slow"]
        assert acts.turn() == ["port", "clock"]

    def test_that_a_port_has_moved_do_not_act(self, acts: Acts) -> None:
        clock = acts.clock("clock", due=0.0)
        acts.pipe("port", lambda: setattr(clock, "due", FOR_EVER), is_full=True)

        assert acts.turn() == ["port"]


class TestActsThatChangeTheLoop:
    def test_a_group_may_be_dropped_by_its_own_act(self, acts: Acts) -> None:
        acts.pipe("first", lambda: acts.loop.drop("group"), group="group", is_full=True)
        acts.pipe("second", group="group", is_full=True)
        acts.clock("clock", group="group", due=0.0)

        assert acts.turn() == ["first"]
        assert acts.at_once() == []

    def test_a_group_may_be_dropped_by_another_one(self, acts: Acts) -> None:
        acts.pipe("one", lambda: acts.loop.drop(2), group=1, is_full=True)
        acts.pipe("two", lambda: acts.loop.drop(1), group=2, is_full=True)

        assert len(acts.turn()) == 1
        assert len(acts.turn()) == 1

    @pytest.mark.parametrize("due", [0.0, FOR_EVER], ids=["due", "ready"])
    def test_a_port_may_be_removed_by_another_one_when_it_is(self, acts: Acts, due: float) -> None:
        acts.pipe("first", lambda: acts.loop.remove(second), is_full=True)
        second = acts.pipe("second", is_full=True)
        second.due = due

        assert acts.turn() == ["first"]

    def test_what_is_added_acts_in_the_next_turn(self, acts: Acts) -> None:
        acts.pipe("first", lambda: acts.pipe("second", group="new", is_full=True), first=Pipe.drain, is_full=True)

        assert [acts.turn(), acts.turn()] == [["first"], ["second"]]

    def test_a_port_that_is_added_again_has_the_last_act_and_group(self, acts: Acts) -> None:
        port = acts.pipe("first", group=1, is_full=True)
        acts.loop.add(port, acts.by("second"), group=2)

        assert acts.turn() == ["second"]
        acts.loop.drop(1)
        assert acts.turn() == ["second"]
        acts.loop.drop(2)
        assert acts.at_once() == []


class TestAFault:
    @pytest.mark.parametrize("is_of_its_act", [True, False], ids=["of its act", "of its time"])
    def test_is_reported_with_its_group_and_the_others_go_on(self, *, is_of_its_act: bool) -> None:
        faults: list[tuple[object, str]] = []
        loop = Loop(lambda group, error: faults.append((group, type(error).__name__)))
        acted: list[str] = []
        loop.add_clock(Due() if is_of_its_act else Broken(), fail, group="bad")
        loop.add_clock(Due(), lambda: acted.append("good"), group="good")

        loop.turn()

        assert (faults, acted) == ([("bad", "ZeroDivisionError")], ["good"])


class Due:
    """A clock whose time has come."""

    def timeout(self) -> float:
        return 0.0


class Broken:
    """One that can't say when its time has come."""

    def timeout(self) -> float:
        raise ZeroDivisionError


def fail() -> None:
    raise ZeroDivisionError
