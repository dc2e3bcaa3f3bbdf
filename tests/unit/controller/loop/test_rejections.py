"""How long a no is believed."""

from __future__ import annotations

from mpirt.controller.loop.backoffs import Rejections
from mpirt.controller.model.actions import Rejection
from mpirt.controller.model.spec import JobKey
from tests.unit.controller.jobs import NOON, at

KEY = JobKey("MPIJob", "ml", "train")
NO = Rejection("Job", "abc", "no such field", final=True)


def test_a_refusal_is_believed_for_half_a_minute() -> None:
    rejections = Rejections()
    rejections.remember(KEY, NO, NOON)

    assert rejections.of(KEY, at(29)) == (NO,)
    assert rejections.next(KEY, at(29)) == at(30)
    assert rejections.of(KEY, at(30)) == ()
    assert rejections.next(KEY, at(30)) is None


def test_each_repetition_is_believed_twice_as_long_up_to_ten_minutes() -> None:
    rejections, now, waits = Rejections(), NOON, []
    for _ in range(7):
        rejections.remember(KEY, NO, now)
        until = rejections.next(KEY, now)
        assert until is not None
        waits.append((until - now).total_seconds())
        now = until

    assert waits == [30, 60, 120, 240, 480, 600, 600]


def test_another_question_has_an_answer_of_its_own() -> None:
    rejections = Rejections()
    rejections.remember(KEY, NO, NOON)
    rejections.remember(KEY, Rejection("Job", "other", "no", final=True), at(20))

    assert [each.digest for each in rejections.of(KEY, at(25))] == ["abc", "other"]
    assert [each.digest for each in rejections.of(KEY, at(35))] == ["other"]


def test_a_yes_makes_the_next_no_a_first_one() -> None:
    rejections = Rejections()
    rejections.remember(KEY, NO, NOON)
    rejections.accepted(KEY, "Job", "abc")
    rejections.accepted(JobKey("MPIJob", "ml", "other"), "Job", "abc")
    rejections.remember(KEY, NO, NOON)

    assert rejections.next(KEY, NOON) == at(30)


def test_nothing_is_kept_of_a_job_that_is_gone() -> None:
    rejections = Rejections()
    rejections.remember(KEY, NO, NOON)
    rejections.forget(KEY)
    rejections.forget(KEY)

    assert rejections.of(KEY, NOON) == ()


def test_what_the_server_fails_at_for_a_while_is_taken_for_a_no_for_half_a_minute_each_time() -> None:
    rejections = Rejections()
    rejections.failed(KEY, NO, NOON)
    rejections.failed(KEY, NO, at(19))
    assert rejections.of(KEY, at(19)) == ()

    rejections.failed(KEY, NO, at(20))
    assert rejections.next(KEY, at(20)) == at(50)

    rejections.failed(KEY, NO, at(50))
    assert rejections.next(KEY, at(50)) == at(80)


def test_an_answer_ends_the_while() -> None:
    for answer in ("accepted", "refused", "forgotten"):
        rejections = Rejections()
        rejections.failed(KEY, NO, NOON)
        match answer:
            case "accepted":
                rejections.accepted(KEY, NO.kind, NO.digest)
            case "refused":
                rejections.remember(KEY, NO, NOON)
            case _:
                rejections.forget(KEY)

        rejections.failed(KEY, NO, at(40))

        assert rejections.of(KEY, at(40)) == ()
