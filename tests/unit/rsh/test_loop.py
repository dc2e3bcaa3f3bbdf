"""Whose turn it is on a loop, and what a turn asks: only the groups that something has happened to."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mpirt.rsh.ports.loop import FOR_EVER, Loop


class Pipe:
    """A port that reads a pipe."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()
        self.want = select.POLLIN
        self.due = FOR_EVER
        self.asked = 0
        self.open = {self.out, self.into}

    @property
    def wants(self) -> int:
        self.asked += 1
        return self.want

    def fileno(self) -> int:
        return self.out

    def timeout(self) -> float:
        self.asked += 1
        return self.due

    def fill(self) -> None:
        os.write(self.into, b"x")

    def drain(self) -> None:
        os.read(self.out, 1)

    def replace(self) -> None:
        """Close the descriptor and open another one with the same number."""
        out, into = os.pipe()
        self.open.add(into)
        os.dup2(out, self.out)
        os.close(out)
        self.into = into

    def keep_open(self) -> None:
        """Have the file open under another number too, as a child that was forked has it."""
        self.open.add(os.dup(self.out))

    def shut(self) -> None:
        os.close(self.out)
        self.open.discard(self.out)
        self.out = -1

    def close(self) -> None:
        for fd in self.open:
            os.close(fd)


class At:
    """A port at some descriptor."""

    def __init__(self, fd: int, wants: int) -> None:
        self.fd, self.wants = fd, wants
        self.due = FOR_EVER

    def fileno(self) -> int:
        return self.fd

    def timeout(self) -> float:
        return self.due


class Acts:
    """A loop, and who has acted on it."""

    def __init__(self, loop: Loop | None = None) -> None:
        self.loop = loop or Loop()
        self.names: list[str] = []
        self._waker = At(-1, 0)

    def by(self, name: str, *acts: Callable[[], object]) -> Callable[[], None]:
        def act() -> None:
            self.names.append(name)
            for each in acts:
                each()

        return act

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
def acts() -> Acts:
    return Acts()


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
    unwanted.want = 0
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


class TestWhoIsAsked:
    def test_a_turn_asks_only_the_group_that_acted(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        busy, idle = pipe(), [At(-1, 0) for _ in range(1000)]
        asked: list[object] = []
        for port in idle:
            port.timeout = lambda port=port: asked.append(port) or FOR_EVER  # type: ignore[func-returns-value, method-assign, misc]
            acts.loop.add(port, acts.by("idle"), group=port)
        acts.loop.add(busy, acts.by("busy"), group="busy")
        busy.fill()

        assert acts.turn() == ["busy"]
        assert len(asked) == len(idle)
        before = busy.asked
        assert [acts.turn() for _ in range(10)] == [["busy"]] * 10
        assert len(asked) == len(idle)
        assert busy.asked > before

    def test_a_change_without_a_touch_goes_unnoticed(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        port = pipe()
        port.want = 0
        acts.loop.add(port, acts.by("port"), group=1)
        port.fill()
        acts.at_once()
        port.want = select.POLLIN

        assert acts.at_once() == []
        acts.loop.touch(1)
        assert acts.turn() == ["port"]

    def test_a_touch_counts_before_the_next_wait(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        touching, touched = pipe(), At(-1, 0)

        def touch() -> None:
            touched.due = 0.0
            acts.loop.touch("touched")

        acts.loop.add(touched, acts.by("touched"), group="touched")
        acts.loop.add(touching, acts.by("touching", touching.drain, touch), group="touching")
        touching.fill()

        assert [acts.turn(), acts.turn()] == [["touching"], ["touched"]]

    def test_touching_an_unknown_group_is_harmless(self, acts: Acts) -> None:
        acts.loop.touch("unknown")
        acts.loop.drop("unknown")

        assert acts.at_once() == []

    def test_an_act_that_raises_has_its_group_asked_again(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        failing, due = pipe(), pipe()
        acts.loop.add(failing, acts.by("failing", failing.drain, lambda: 1 / 0))
        acts.loop.add(due, acts.by("due", lambda: setattr(due, "due", FOR_EVER)), group="due")
        failing.fill()
        due.due = 0.0

        with pytest.raises(ZeroDivisionError):
            acts.turn()
        assert acts.turn() == ["due"]


class TestNumbers:
    @pytest.mark.parametrize("is_kept_open", [False, True])
    def test_another_file_under_the_same_number_is_heard(
        self, acts: Acts, pipe: Callable[[], Pipe], *, is_kept_open: bool
    ) -> None:
        port = pipe()
        if is_kept_open:
            port.keep_open()
        acts.loop.add(port, acts.by("port", port.replace))
        port.fill()

        assert acts.turn() == ["port"]
        assert acts.at_once() == []
        port.fill()
        assert acts.turn() == ["port"]

    @pytest.mark.parametrize("is_kept_open", [False, True])
    @pytest.mark.parametrize("asked_first", ["old", "new"])
    def test_a_number_that_moves_to_another_group_is_that_groups(
        self, acts: Acts, pipe: Callable[[], Pipe], asked_first: str, *, is_kept_open: bool
    ) -> None:
        old, new = pipe(), pipe()
        number, fd = old.out, new.out
        # The old one's file has something to read for ever.
        old.fill()
        if is_kept_open:
            old.keep_open()

        def move() -> None:
            if new.out == number:
                return
            old.shut()
            os.dup2(fd, number)
            new.out = number
            new.open.add(number)
            for group in (asked_first, "old", "new"):
                acts.loop.touch(group)

        new.want = 0
        acts.loop.add(old, acts.by("old", move), group="old")
        acts.loop.add(new, acts.by("new"), group="new")
        assert acts.turn() == ["old"]
        new.want = select.POLLIN

        for _ in range(3):
            assert acts.at_once() == []
        new.fill()
        assert acts.turn() == ["new"]

    def test_a_file_that_is_open_elsewhere_is_not_reported_for_ever(
        self, acts: Acts, pipe: Callable[[], Pipe]
    ) -> None:
        port = pipe()
        port.keep_open()
        acts.loop.add(port, acts.by("port", port.shut))
        port.fill()
        assert acts.turn() == ["port"]
        clock = At(-1, 0)
        clock.due = 0.05
        acts.loop.add_clock(clock, acts.by("clock"))

        # The first turn may be for nothing; the second one waits.
        turns = 0
        begin = time.monotonic()
        while time.monotonic() - begin < clock.due:
            acts.turn()
            turns += 1
        assert turns <= 3

    def test_two_groups_may_exchange_their_numbers(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        one, two = pipe(), pipe()
        acts.loop.add(one, acts.by("one"), group=1)
        acts.loop.add(two, acts.by("two"), group=2)
        acts.at_once()
        one.out, two.out = two.out, one.out
        acts.loop.touch(1)
        acts.loop.touch(2)

        one.fill()
        assert acts.turn() == ["two"]

    def test_two_ports_may_share_a_number(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        ours = pipe()
        reader, writer = At(ours.into, select.POLLIN), At(ours.into, select.POLLOUT)
        acts.loop.add(reader, acts.by("reader"))
        acts.loop.add(writer, acts.by("writer"))

        assert acts.turn() == ["reader", "writer"]
        acts.loop.remove(reader)
        assert acts.turn() == ["writer"]
        writer.wants = select.POLLIN
        assert acts.at_once() == []

    def test_who_shares_a_number_does_not_wake_for_one_that_was_removed(
        self, acts: Acts, pipe: Callable[[], Pipe]
    ) -> None:
        reader = pipe()
        other = At(reader.out, select.POLLOUT)
        acts.loop.add(reader, acts.by("reader"), group=1)
        acts.loop.add(other, acts.by("other"), group=2)
        acts.at_once()
        acts.loop.remove(reader)
        reader.fill()

        assert acts.at_once() == []

    def test_a_port_that_was_removed_after_it_was_closed_is_forgotten(
        self, acts: Acts, pipe: Callable[[], Pipe]
    ) -> None:
        port = pipe()
        acts.loop.add(port, acts.by("port"))
        port.fill()
        assert acts.turn() == ["port"]
        port.shut()
        acts.loop.remove(port)

        assert acts.at_once() == []

    def test_who_is_not_at_its_descriptor_any_more_does_not_act(
        self, acts: Acts, pipe: Callable[[], Pipe]
    ) -> None:
        # As a terminal's stdin, once the process is in the background.
        port = pipe()
        acts.loop.add(port, acts.by("port"))
        acts.at_once()
        port.fill()
        terminal, port.out = port.out, -1

        assert acts.turn() == []
        assert acts.at_once() == []
        port.out = terminal
        acts.loop.touch(None)
        assert acts.turn() == ["port"]


class TestDescriptorsThatEpollRefuses:
    @pytest.mark.parametrize("kind", ["file", "folder", "null"])
    def test_are_always_ready_while_they_are_wanted(self, acts: Acts, tmp_path: Path, kind: str) -> None:
        (tmp_path / "file").write_bytes(b"")
        fd = os.open({"file": tmp_path / "file", "folder": tmp_path, "null": Path(os.devnull)}[kind], os.O_RDONLY)
        try:
            port = At(fd, select.POLLIN)
            acts.loop.add(port, acts.by("port"))

            assert [acts.turn(), acts.turn()] == [["port"], ["port"]]
            port.wants = 0
            assert acts.at_once() == []
        finally:
            os.close(fd)

    def test_a_number_that_is_not_open_is_reported_as_poll_does(
        self, acts: Acts, pipe: Callable[[], Pipe]
    ) -> None:
        ours = pipe()
        port = At(ours.out, select.POLLIN)
        ours.shut()
        acts.loop.add(port, acts.by("port", lambda: setattr(port, "fd", -1)))

        assert acts.turn() == ["port"]
        assert acts.at_once() == []

    def test_leave_the_others_their_turn(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        other = pipe()
        always = At(os.open(os.devnull, os.O_RDONLY), select.POLLIN)
        try:
            acts.loop.add(always, acts.by("always"), group=1)
            acts.loop.add(other, acts.by("other"), group=2)
            assert acts.turn() == ["always"]
            other.fill()

            assert sorted(acts.turn()) == ["always", "other"]
        finally:
            os.close(always.fd)

    def test_may_be_followed_by_one_that_it_takes(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        ours = pipe()
        port = At(os.open(os.devnull, os.O_RDONLY), select.POLLIN)
        ours.open.add(port.fd)
        acts.loop.add(port, acts.by("port", lambda: os.dup2(ours.out, port.fd)))

        assert acts.turn() == ["port"]
        assert acts.at_once() == []
        ours.fill()
        assert acts.turn() == ["port"]


class TestWakingUp:
    def test_a_peer_that_went_away_wakes(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        port = pipe()
        acts.loop.add(port, acts.by("port"))
        acts.at_once()
        os.close(port.into)
        port.open.discard(port.into)

        assert acts.turn() == ["port"]

    def test_a_peer_that_went_away_does_not_wake_who_wants_nothing(
        self, acts: Acts, pipe: Callable[[], Pipe]
    ) -> None:
        port = pipe()
        acts.loop.add(port, acts.by("port"))
        acts.at_once()
        os.close(port.into)
        port.open.discard(port.into)
        port.want = 0
        acts.loop.touch(None)

        assert acts.at_once() == []

    def test_a_time_is_waited_for_in_one_turn(self, acts: Acts) -> None:
        port = At(-1, 0)
        end = time.monotonic() + 0.0104
        port.timeout = lambda: max(0.0, end - time.monotonic())  # type: ignore[method-assign]
        acts.loop.add(port, acts.by("port"))

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
        ports = [At(-1, 0) for _ in range(20)]
        for number, port in enumerate(ports):
            acts.loop.add(port, acts.by(str(number)), group=number)
        for seconds in range(100):
            for number, port in enumerate(ports):
                port.due = 1000.0 + seconds + number
                acts.loop.touch(number)
            assert acts.at_once() == []
        ports[7].due = 0.0
        acts.loop.touch(7)

        assert acts.turn() == ["7"]

    def test_a_time_that_is_over_for_long_does_not_wait_for_ever(self, acts: Acts) -> None:
        port = At(-1, 0)
        port.due = -5.0
        acts.loop.add(port, acts.by("port"))

        assert acts.turn() == ["port"]


class TestClocks:
    def test_come_after_the_ports_of_all_groups(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        clock, ports = At(-1, 0), [pipe() for _ in range(50)]
        clock.due = 0.0
        acts.loop.add_clock(clock, acts.by("clock"), group="clock")
        for port in ports:
            acts.loop.add(port, acts.by("port"), group=port)
            port.fill()

        assert acts.turn() == ["port"] * 50 + ["clock"]

    def test_that_become_due_in_a_turn_wait_until_ports_were_heard_again(
        self, acts: Acts, pipe: Callable[[], Pipe]
    ) -> None:
        clock, port, slow = At(-1, 0), pipe(), At(-1, 0)
        acts.loop.add_clock(clock, acts.by("clock"), group=1)
        acts.loop.add(port, acts.by("port"), group=1)

        def take_long() -> None:
            slow.due = FOR_EVER
            clock.due = 0.0
            port.fill()

        acts.loop.add(slow, acts.by("slow", take_long), group=1)
        slow.due = 0.0

        assert acts.turn() == ["slow"]
        assert acts.turn() == ["port", "clock"]

    def test_a_clock_that_a_port_has_moved_does_not_act(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        clock, port = At(-1, 0), pipe()
        clock.due = 0.0
        acts.loop.add_clock(clock, acts.by("clock"))
        acts.loop.add(port, acts.by("port", lambda: setattr(clock, "due", FOR_EVER)))
        port.fill()

        assert acts.turn() == ["port"]


class TestActsThatChangeTheLoop:
    def test_a_group_may_be_dropped_by_its_own_act(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        first, second, clock = pipe(), pipe(), At(-1, 0)
        clock.due = 0.0
        acts.loop.add(first, acts.by("first", lambda: acts.loop.drop("group")), group="group")
        acts.loop.add(second, acts.by("second"), group="group")
        acts.loop.add_clock(clock, acts.by("clock"), group="group")
        first.fill()
        second.fill()

        assert acts.turn() == ["first"]
        assert acts.at_once() == []

    def test_a_group_may_be_dropped_by_another_one(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        one, two = pipe(), pipe()
        acts.loop.add(one, acts.by("one", lambda: acts.loop.drop(2)), group=1)
        acts.loop.add(two, acts.by("two", lambda: acts.loop.drop(1)), group=2)
        one.fill()
        two.fill()

        assert len(acts.turn()) == 1
        assert len(acts.turn()) == 1

    def test_a_port_that_is_due_may_be_removed_by_another_one(self, acts: Acts) -> None:
        first, second = At(-1, 0), At(-1, 0)
        first.due = second.due = 0.0
        acts.loop.add(first, acts.by("first", lambda: acts.loop.remove(second)))
        acts.loop.add(second, acts.by("second"))

        assert acts.turn() == ["first"]

    def test_what_is_added_acts_in_the_next_turn(self, acts: Acts, pipe: Callable[[], Pipe]) -> None:
        first, second = pipe(), pipe()
        second.fill()
        acts.loop.add(
            first, acts.by("first", first.drain, lambda: acts.loop.add(second, acts.by("second"), group="new"))
        )
        first.fill()

        assert [acts.turn(), acts.turn()] == [["first"], ["second"]]

    def test_a_port_that_is_added_again_has_the_last_act_and_group(
        self, acts: Acts, pipe: Callable[[], Pipe]
    ) -> None:
        port = pipe()
        acts.loop.add(port, acts.by("first"), group=1)
        acts.loop.add(port, acts.by("second"), group=2)
        port.fill()

        assert acts.turn() == ["second"]
        acts.loop.drop(1)
        assert acts.turn() == ["second"]
        acts.loop.drop(2)
        assert acts.at_once() == []

    def test_a_removed_port_can_be_closed_and_its_number_used_at_once(
        self, acts: Acts, pipe: Callable[[], Pipe]
    ) -> None:
        old, new = pipe(), pipe()
        acts.loop.add(old, acts.by("old"), group=1)
        old.fill()
        assert acts.turn() == ["old"]
        acts.loop.remove(old)
        number = old.out
        old.shut()
        os.dup2(new.out, number)
        new.out = number
        new.open.add(number)
        acts.loop.add(new, acts.by("new"), group=2)

        assert acts.at_once() == []
        new.fill()
        assert acts.turn() == ["new"]


class TestAFault:
    """What an act raises."""

    def test_is_raised_where_nobody_wants_to_know(self) -> None:
        loop = Loop()
        loop.add_clock(Due(), fail)

        with pytest.raises(ZeroDivisionError):
            loop.turn()

    def test_is_told_with_its_group_and_the_others_go_on(self) -> None:
        faults: list[tuple[object, str]] = []
        loop = Loop(lambda group, error: faults.append((group, type(error).__name__)))
        acted: list[str] = []
        loop.add_clock(Due(), fail, group="bad")
        loop.add_clock(Due(), lambda: acted.append("good"), group="good")

        loop.turn()

        assert (faults, acted) == ([("bad", "ZeroDivisionError")], ["good"])

    def test_of_a_question_is_told_too(self) -> None:
        faults: list[object] = []
        loop = Loop(lambda group, _: faults.append(group))
        loop.add_clock(Broken(), fail, group="bad")
        loop.add_clock(Due(), lambda: None, group="good")

        loop.turn()

        assert faults == ["bad"]


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
