"""Which key comes next, by a clock and a chance that are handed in."""

from __future__ import annotations

import pytest

from mpirt.controller.loop.queue import FIRST_DELAY, LONGEST_DELAY, LONGEST_REST, TURNS_AT_ONCE, Queue


@pytest.fixture
def queue() -> Queue[str]:
    """A queue whose chance is always in the middle. The groups of keys are their first letters."""
    return Queue(lambda: 0.5, group=first_letter)


@pytest.fixture
def busy(queue: Queue[str]) -> Queue[str]:
    """The same, whose key "a" is with a worker."""
    queue.add("a")
    queue.take(0)
    return queue


def first_letter(key: str) -> str:
    return key[0]


def taken(queue: Queue[str], now: float = 0) -> list[str]:
    found = []
    while (key := queue.take(now)) is not None:
        found.append(key)
    return found


class TestTaking:
    def test_keys_come_in_the_order_in_which_they_were_added(self, queue: Queue[str]) -> None:
        for key in "bac":
            queue.add(key)

        assert taken(queue) == ["b", "a", "c"]

    def test_groups_take_turns_however_many_keys_one_has(self, queue: Queue[str]) -> None:
        for key in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
            queue.add(key)

        assert queue.depth() == 7
        assert taken(queue) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]

    def test_a_group_that_is_added_again_is_the_last_one(self, queue: Queue[str]) -> None:
        for key in ("a1", "b1", "b2"):
            queue.add(key)

        assert queue.take(0) == "a1"
        queue.done("a1")
        queue.add("a1")
        assert taken(queue) == ["b1", "a1", "b2"]

    def test_a_key_that_was_added_twice_comes_once(self, queue: Queue[str]) -> None:
        queue.add("a")
        queue.add("a")

        assert queue.depth() == 1
        assert taken(queue) == ["a"]

    def test_no_key_is_taken_by_two_at_a_time(self, busy: Queue[str]) -> None:
        busy.add("a")

        assert busy.take(0) is None

    def test_what_was_added_meanwhile_comes_again_when_it_is_given_back(self, busy: Queue[str]) -> None:
        busy.add("a")
        busy.done("a")

        assert taken(busy) == ["a"]

    def test_a_key_that_is_done_comes_no_more(self, busy: Queue[str]) -> None:
        busy.done("a")

        assert busy.take(1000) is None
        assert busy.next_date() is None


class TestDates:
    def test_a_key_comes_on_its_date_and_not_before(self, queue: Queue[str]) -> None:
        queue.add_at("a", 10)

        assert queue.take(9.9) is None
        assert queue.next_date() == 10
        assert queue.take(10) == "a"

    def test_of_several_dates_the_first_counts(self, queue: Queue[str]) -> None:
        for date in (10, 5, 7):
            queue.add_at("a", date)

        assert queue.next_date() == 5
        assert queue.take(5) == "a"
        queue.done("a")
        assert queue.take(20) is None

    def test_who_is_looked_at_before_its_date_needs_no_date_any_more(self, queue: Queue[str]) -> None:
        queue.add_at("a", 10)
        queue.add("a")

        assert taken(queue) == ["a"]
        assert queue.next_date() is None

    def test_a_date_that_comes_while_somebody_has_the_key_is_not_lost(self, busy: Queue[str]) -> None:
        busy.add_at("a", 5)

        assert busy.take(6) is None
        busy.done("a")
        assert busy.take(6) == "a"

    def test_dates_that_no_longer_count_do_not_pile_up(self, queue: Queue[str]) -> None:
        for _ in range(10_000):
            queue.add_at("a", 600)
            queue.add("a")
            queue.take(0)
            queue.done("a")
        queue.add_at("a", 600)

        assert queue.dates() < 1000
        assert taken(queue, 600) == ["a"]

    def test_several_dates_may_pass_at_once(self, queue: Queue[str]) -> None:
        queue.add_at("b", 2)
        queue.add_at("a", 1)

        assert taken(queue, 3) == ["a", "b"]


class TestFailing:
    def test_each_failure_doubles_the_wait(self, queue: Queue[str]) -> None:
        waits = []
        for _ in range(4):
            queue.add("a")
            queue.take(0)
            waits.append(queue.failed("a", 0))

        assert waits == [FIRST_DELAY * times for times in (1, 2, 4, 8)]

    def test_the_wait_has_an_end(self, queue: Queue[str]) -> None:
        for _ in range(100):
            queue.add("a")
            queue.take(0)
            wait = queue.failed("a", 0)

        assert wait == LONGEST_DELAY

    def test_chance_spreads_it(self) -> None:
        for chance, share in ((0.0, 0.8), (1.0, 1.2)):
            queue: Queue[str] = Queue(lambda chance=chance: chance, group=first_letter)  # type: ignore[misc]  # bound on purpose
            queue.add("a")
            queue.take(0)

            assert queue.failed("a", 0) == pytest.approx(FIRST_DELAY * share)

    def test_what_was_added_meanwhile_waits_too(self, busy: Queue[str]) -> None:
        busy.add("a")
        busy.failed("a", 0)

        assert busy.take(FIRST_DELAY / 2) is None
        assert busy.take(FIRST_DELAY) == "a"

    @pytest.mark.parametrize("chance", [0.0, 1.0])
    def test_who_was_asked_to_wait_comes_no_sooner_whatever_happens(self, chance: float) -> None:
        queue: Queue[str] = Queue(lambda: chance, group=first_letter)
        queue.add("a")
        queue.take(0)
        queue.add_at("a", 1)

        wait = queue.failed("a", 0, at_least=7)

        assert 7 <= wait <= 10
        queue.add("a")
        assert taken(queue, 6.9) == []
        assert taken(queue, wait) == ["a"]
        queue.done("a")
        queue.add("a")
        assert taken(queue, wait) == ["a"]

    def test_a_wait_that_is_asked_for_is_no_shorter_than_the_usual_one(self, queue: Queue[str]) -> None:
        for _ in range(20):
            queue.add("a")
            queue.take(1000)
            wait = queue.failed("a", 0, at_least=1)

        assert wait == LONGEST_DELAY

    def test_a_success_makes_the_next_failure_the_first(self, queue: Queue[str]) -> None:
        for settle in (queue.failed, queue.failed):
            queue.add("a")
            queue.take(0)
            settle("a", 0)
        queue.add("a")
        queue.take(0)
        queue.done("a")
        queue.add("a")
        queue.take(0)

        assert queue.failed("a", 0) == FIRST_DELAY


class TestResting:
    @pytest.mark.parametrize(
        ("took", "rest"),
        [pytest.param(0.02, 0.18, id="nine times as long"), pytest.param(5, LONGEST_REST, id="not for long")],
    )
    def test_a_key_that_took_long_without_need_rests(self, busy: Queue[str], took: float, rest: float) -> None:
        busy.done("a", 7, took=took)
        busy.add("a")

        assert taken(busy, 7 + 0.99 * rest) == []
        assert busy.next_date() == pytest.approx(7 + rest)
        assert taken(busy, 7 + 1.01 * rest) == ["a"]

    def test_what_was_added_meanwhile_comes_after_the_rest(self, busy: Queue[str]) -> None:
        busy.add("a")

        busy.done("a", 7, took=0.02)

        assert taken(busy, 7) == []
        assert taken(busy, 7.2) == ["a"]

    def test_a_key_that_is_added_later_does_not_wait(self, busy: Queue[str]) -> None:
        busy.done("a", 7, took=0.02)

        busy.add("a")

        assert taken(busy, 8) == ["a"]

    def test_a_key_that_took_no_time_comes_at_once(self, busy: Queue[str]) -> None:
        busy.done("a", 7, took=0.001)

        busy.add("a")

        assert taken(busy, 7) == ["a"]

    def test_keys_that_never_come_again_are_not_kept(self, queue: Queue[str]) -> None:
        for number in range(1000):
            queue.add(f"a{number}")
            queue.take(number)
            queue.done(f"a{number}", number, took=1)

        assert queue.resting() <= 101


class TestMore:
    def test_a_key_with_more_to_do_comes_again_behind_the_others_however_often(self, queue: Queue[str]) -> None:
        queue.add("a")
        for _ in range(2 * TURNS_AT_ONCE):
            assert queue.take(0) == "a"
            queue.add("b")
            queue.more("a")
            assert queue.take(0) == "b"
            queue.done("b")

    def test_it_makes_the_next_failure_the_first(self, busy: Queue[str]) -> None:
        busy.failed("a", 0)
        busy.take(FIRST_DELAY)
        busy.more("a")
        busy.take(FIRST_DELAY)

        assert busy.failed("a", FIRST_DELAY) == FIRST_DELAY


class TestChanging:
    def test_who_was_changed_is_looked_at_again_at_once(self, busy: Queue[str]) -> None:
        busy.changed("a", 0)

        assert busy.take(0) == "a"

    def test_who_never_settles_is_looked_at_ever_more_seldom(self, queue: Queue[str]) -> None:
        queue.add("a")
        for _ in range(TURNS_AT_ONCE):
            assert queue.take(0) == "a"
            queue.changed("a", 0)

        assert queue.take(0) is None
        assert queue.take(FIRST_DELAY) == "a"
        queue.changed("a", FIRST_DELAY)
        assert queue.next_date() == FIRST_DELAY + 2 * FIRST_DELAY
