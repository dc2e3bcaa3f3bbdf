"""How long a no is believed."""

from __future__ import annotations

from mpirt.controller.loop.rejections import Refusals
from mpirt.controller.model.actions import Refusal
from mpirt.controller.model.spec import JobKey
from tests.unit.controller.jobs import NOON, at

KEY = JobKey("ml", "train")
NO = Refusal("Job", "abc", "no such field", final=True)


def test_a_refusal_is_believed_for_half_a_minute() -> None:
    refusals = Refusals()
    refusals.remember(KEY, NO, NOON)

    assert refusals.of(KEY, at(29)) == (NO,)
    assert refusals.next(KEY, at(29)) == at(30)
    assert refusals.of(KEY, at(30)) == ()
    assert refusals.next(KEY, at(30)) is None


def test_each_repetition_is_believed_twice_as_long_up_to_ten_minutes() -> None:
    refusals, now, waits = Refusals(), NOON, []
    for _ in range(7):
        refusals.remember(KEY, NO, now)
        until = refusals.next(KEY, now)
        assert until is not None
        waits.append((until - now).total_seconds())
        now = until

    assert waits == [30, 60, 120, 240, 480, 600, 600]


def test_another_question_has_an_answer_of_its_own() -> None:
    refusals = Refusals()
    refusals.remember(KEY, NO, NOON)
    refusals.remember(KEY, Refusal("Job", "other", "no", final=True), at(20))

    assert [each.digest for each in refusals.of(KEY, at(25))] == ["abc", "other"]
    assert [each.digest for each in refusals.of(KEY, at(35))] == ["other"]


def test_a_yes_makes_the_next_no_a_first_one() -> None:
    refusals = Refusals()
    refusals.remember(KEY, NO, NOON)
    refusals.accepted(KEY, "Job", "abc")
    refusals.accepted(JobKey("ml", "other"), "Job", "abc")
    refusals.remember(KEY, NO, NOON)

    assert refusals.next(KEY, NOON) == at(30)


def test_nothing_is_kept_of_a_job_that_is_gone() -> None:
    refusals = Refusals()
    refusals.remember(KEY, NO, NOON)
    refusals.forget(KEY)
    refusals.forget(KEY)

    assert refusals.of(KEY, NOON) == ()


def test_what_the_server_fails_at_for_a_while_is_taken_for_a_no_for_half_a_minute_each_time() -> None:
    refusals = Refusals()
    refusals.failed(KEY, NO, NOON)
    refusals.failed(KEY, NO, at(19))
    assert refusals.of(KEY, at(19)) == ()

    refusals.failed(KEY, NO, at(20))
    assert refusals.next(KEY, at(20)) == at(50)

    refusals.failed(KEY, NO, at(50))
    assert refusals.next(KEY, at(50)) == at(80)


def test_an_answer_ends_the_while() -> None:
    for answer in ("accepted", "refused", "forgotten"):
        refusals = Refusals()
        refusals.failed(KEY, NO, NOON)
        match answer:
            case "accepted":
                refusals.accepted(KEY, NO.kind, NO.digest)
            case "refused":
                refusals.remember(KEY, NO, NOON)
            case _:
                refusals.forget(KEY)

        refusals.failed(KEY, NO, at(40))

        assert refusals.of(KEY, at(40)) == ()
