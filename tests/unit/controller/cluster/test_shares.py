"""Which pod is asked next: each namespace and job has its share, and slow pods have one for all of them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest

from mpirt.controller.cluster.shares import Shares, Turn
from mpirt.controller.model.actions import Question
from mpirt.controller.model.spec import JobKey
from tests.unit.controller.jobs import NOON, at

ONE = JobKey("TrainingJob", "ml", "one")
TWO = JobKey("TrainingJob", "ml", "two")
OTHER = JobKey("TrainingJob", "vision", "other")
LATER = at(15)


def of(job: JobKey, *numbers: int) -> list[Question]:
    """The pods of a job."""
    return [Question(f"{job.name}-{n}", f"uid-of-{job.namespace}-{job.name}-{n}", "worker") for n in numbers]


def taken(shares: Shares, now: datetime = NOON, most: int = 1000) -> list[Turn]:
    """The questions that are put now."""
    turns: list[Turn] = []
    while len(turns) < most and (turn := shares.take(now)) is not None:
        turns.append(turn)
    return turns


def pods(turns: list[Turn]) -> list[str]:
    return [one.question.pod for one in turns]


def asking(*jobs: JobKey, pods: int = 40, places: int = 32) -> Shares:
    """Each of the jobs wants so many pods asked."""
    shares = Shares(places)
    for job in jobs:
        shares.ask(job, of(job, *range(pods)), NOON)
    return shares


def answered(shares: Shares, turns: list[Turn], now: datetime, sessions: int | None = 1) -> None:
    for turn in turns:
        shares.done(turn, sessions, "", now)


class TestThePlaces:
    def test_of_one_job_are_at_most_a_quarter(self) -> None:
        assert len(taken(asking(ONE))) == 8

    def test_of_a_namespace_are_at_most_half(self) -> None:
        jobs = [JobKey("TrainingJob", "ml", f"job-{n}") for n in range(10)]

        assert len(taken(asking(*jobs))) == 16

    def test_are_left_for_others_however_many_namespaces_want_all(self) -> None:
        shares = Shares(32)
        held = []
        for space in ("a", "b", "c", "d"):
            for n in range(4):
                job = JobKey("TrainingJob", space, f"job-{n}")
                shares.ask(job, of(job, *range(40)), NOON)
            held.append(len(taken(shares)))

        assert held == [16, 8, 4, 2]
        shares.ask(OTHER, of(OTHER, 0), NOON)
        assert pods(taken(shares)) == ["other-0"]

    def test_that_are_free_again_are_taken(self) -> None:
        shares = asking(ONE)
        answered(shares, taken(shares)[:3], at(1))

        assert pods(taken(shares, at(1))) == ["one-8", "one-9", "one-10"]


class TestTheOrder:
    def test_is_by_turns_of_namespaces_and_of_their_jobs(self) -> None:
        shares = asking(ONE, TWO, OTHER)

        assert pods(taken(shares, most=6)) == ["one-0", "other-0", "two-0", "other-1", "one-1", "other-2"]

    def test_of_the_pods_of_a_job_is_the_one_in_which_they_were_asked_for(self) -> None:
        shares = Shares(4)
        shares.ask(ONE, of(ONE, 0, 1, 2), NOON)
        [first] = taken(shares)
        answered(shares, [first], NOON)

        shares.ask(ONE, of(ONE, 0, 1, 2), at(5))

        order = []
        for _ in range(3):
            [turn] = taken(shares, at(5))
            order.append(turn.question.pod)
            answered(shares, [turn], at(5))
        assert sorted(order) == ["one-0", "one-1", "one-2"]
        assert order.index("one-1") < order.index("one-2")

    def test_gives_turns_to_those_that_have_and_that_have_not_answered_yet(self) -> None:
        shares = Shares(4)
        shares.ask(ONE, of(ONE, 0), NOON)
        answered(shares, taken(shares), NOON)
        counts: Counter[str] = Counter()

        for second in range(2, 20, 2):
            shares.ask(ONE, of(ONE, *range(40)), at(second))
            turns = taken(shares, at(second))
            counts.update(pods(turns))
            answered(shares, turns, at(second))

        assert 3 <= counts["one-0"] <= 5
        assert max(counts[f"one-{n}"] for n in range(1, 40)) <= 2


class TestAPause:
    @pytest.mark.parametrize(
        ("sessions", "pause"),
        [pytest.param(1, 1, id="in use"), pytest.param(None, 1, id="unknown"), pytest.param(0, 2.1, id="idle")],
    )
    def test_is_made_before_a_pod_is_asked_again(self, sessions: int | None, pause: float) -> None:
        shares = Shares()
        shares.ask(ONE, of(ONE, 0), NOON)
        answered(shares, taken(shares), NOON, sessions)

        assert shares.ask(ONE, of(ONE, 0), NOON) == at(pause)
        assert taken(shares, at(pause)) == []
        assert shares.ask(ONE, of(ONE, 0), at(pause)) is None
        assert pods(taken(shares, at(pause))) == ["one-0"]

    def test_grows_while_a_pod_hangs_and_is_short_again_once_it_answers(self) -> None:
        shares, now, pauses = Shares(), NOON, []
        for sessions in (None, None, None, None, None, None, None, None, 1):
            shares.ask(ONE, of(ONE, 0), now)
            turns = taken(shares, now)
            now += timedelta(seconds=15)
            answered(shares, turns, now, sessions)
            again = shares.ask(ONE, of(ONE, 0), now)
            assert again is not None
            pauses.append((again - now).total_seconds())
            now = again

        assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 1]

    def test_is_not_made_of_a_pod_that_is_being_asked(self) -> None:
        shares = asking(ONE, pods=1)
        taken(shares)

        assert shares.ask(ONE, of(ONE, 0), at(5)) is None
        assert taken(shares, at(5)) == []


class TestSlowPods:
    def slow(self, *jobs: JobKey) -> Shares:
        """Pods of the jobs, eight of each, that were asked and hung; they are wanted again."""
        shares = asking(*jobs, pods=8)
        answered(shares, taken(shares), LATER, None)
        for job in jobs:
            shares.ask(job, of(job, *range(8)), at(20))
        return shares

    def test_of_all_together_get_at_most_a_quarter(self) -> None:
        jobs = [JobKey("TrainingJob", f"space-{n}", "one") for n in range(2)]
        shares = self.slow(*jobs)

        assert len(taken(shares, at(20))) == 8

    def test_count_as_such_as_soon_as_a_question_lasts_long(self) -> None:
        shares = asking(ONE, TWO)
        taken(shares)

        shares.ask(OTHER, of(OTHER, 0), at(3))
        three = JobKey("TrainingJob", "ml", "three")
        shares.ask(three, of(three, 0), at(3))

        assert pods(taken(shares, at(3))) == ["other-0"]

    def test_that_answer_late_count_too(self) -> None:
        jobs = [JobKey("TrainingJob", f"space-{n}", "one") for n in range(2)]
        shares = asking(*jobs, pods=8)
        answered(shares, taken(shares), LATER)
        for job in jobs:
            shares.ask(job, of(job, *range(8)), at(20))

        assert len(taken(shares, at(20))) == 8

    def test_delay_no_pod_of_the_same_job_that_has_answered_at_once(self) -> None:
        shares = Shares(16)
        shares.ask(ONE, of(ONE, 0), NOON)
        answered(shares, taken(shares), NOON)
        shares.ask(TWO, of(TWO, *range(4)), NOON)
        answered(shares, taken(shares), LATER, None)
        shares.ask(TWO, of(TWO, *range(4)), at(20))
        taken(shares, at(20))

        shares.ask(ONE, of(ONE, 0, 1), at(20))

        assert pods(taken(shares, at(20))) == ["one-0"]

    @pytest.mark.parametrize(
        ("second", "count"), [pytest.param(74, 8, id="for a minute"), pytest.param(76, 16, id="no longer")]
    )
    def test_make_new_ones_of_their_namespace_suspect(self, second: float, count: int) -> None:
        shares = self.slow(ONE)
        shares.forget(ONE)
        for n in range(3):
            job = JobKey("TrainingJob", "ml", f"new-{n}")
            shares.ask(job, of(job, *range(8)), at(second))

        assert len(taken(shares, at(second))) == count

    def test_that_answer_at_once_again_are_slow_no_more(self) -> None:
        shares = self.slow(ONE, OTHER)
        while turns := taken(shares, at(20)):
            answered(shares, turns, at(20))
        for job in (ONE, OTHER):
            shares.ask(job, of(job, *range(8)), at(30))

        assert len(taken(shares, at(30))) == 16


class TestAnAnswer:
    def test_is_kept_while_its_pod_is_asked_for(self) -> None:
        shares = asking(ONE, pods=2)
        answered(shares, taken(shares), at(1))

        shares.ask(ONE, of(ONE, 1), at(2))

        assert list(shares.answers(ONE)) == ["uid-of-ml-one-1"]
        assert shares.ask(ONE, [], at(3)) is None
        assert shares.answers(ONE) == {}

    def test_that_nobody_waits_for_any_more_is_dropped(self) -> None:
        shares = asking(ONE, TWO, pods=2)
        turns = taken(shares)
        shares.ask(ONE, of(ONE, 1), at(1))
        shares.forget(TWO)

        wanted = [one.question.pod for one in turns if shares.done(one, 1, "", at(1))]

        assert wanted == ["one-1"]
        assert shares.answers(TWO) == {}

    def test_of_no_command_is_dated_by_the_first_of_them(self) -> None:
        shares = asking(ONE, pods=1)
        idle = []
        for second, sessions in ((1, 0), (5, 0), (10, 1), (15, 0)):
            shares.ask(ONE, of(ONE, 0), at(second))
            answered(shares, taken(shares, at(second)), at(second), sessions)
            idle.append(shares.answers(ONE)["uid-of-ml-one-0"].idle_since)

        assert idle == [at(1), at(1), None, at(15)]


class TestAQuestion:
    def test_that_is_withdrawn_is_not_put(self) -> None:
        shares = asking(ONE, TWO)

        shares.ask(ONE, of(ONE, 3), NOON)
        shares.ask(TWO, [], NOON)

        assert pods(taken(shares)) == ["one-3"]

    def test_of_a_pod_that_is_being_asked_is_put_again_when_it_is_over(self) -> None:
        shares = asking(ONE, pods=1)
        [turn] = taken(shares)
        shares.forget(ONE)
        shares.ask(ONE, of(ONE, 0), at(1))
        assert taken(shares, at(1)) == []

        assert shares.done(turn, 1, "", at(1))
        shares.ask(ONE, of(ONE, 0), at(2))
        assert pods(taken(shares, at(2))) == ["one-0"]

    def test_of_no_pod_leaves_nothing_behind(self) -> None:
        shares = Shares()
        shares.forget(ONE)

        assert shares.ask(ONE, [], NOON) is None
        assert taken(shares) == []
