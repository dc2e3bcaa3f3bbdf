"""Rejected requests and undone edits are repeated with growing delays."""

from __future__ import annotations

import pytest

from mpirt.controller.loop.backoffs import EditLimits, Rejections
from mpirt.controller.model.actions import Create, Patch, Rejection
from mpirt.controller.model.spec import JobKey
from tests.unit.controller.jobs import NOON, at

KEY = JobKey("MPIJob", "ml", "train")
NO = Rejection("Job", "abc", "no such field", final=True)


@pytest.fixture
def rejections() -> Rejections:
    """A request was rejected at noon."""
    made = Rejections()
    made.remember(KEY, NO, NOON)
    return made


def test_a_refusal_is_believed_for_half_a_minute(rejections: Rejections) -> None:
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


def test_another_question_has_an_answer_of_its_own(rejections: Rejections) -> None:
    rejections.remember(KEY, Rejection("Job", "other", "no", final=True), at(20))

    assert [each.digest for each in rejections.of(KEY, at(25))] == ["abc", "other"]
    assert [each.digest for each in rejections.of(KEY, at(35))] == ["other"]


def test_a_yes_makes_the_next_no_a_first_one(rejections: Rejections) -> None:
    rejections.accepted(KEY, "Job", "abc")
    rejections.accepted(JobKey("MPIJob", "ml", "other"), "Job", "abc")
    rejections.remember(KEY, NO, NOON)

    assert rejections.next(KEY, NOON) == at(30)


def test_nothing_is_kept_of_a_job_that_is_gone(rejections: Rejections) -> None:
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


CREATE = Create({"kind": "ConfigMap", "metadata": {"name": "train-config"}}, "missing", "wanted")
PATCH = Patch("ConfigMap", "train-config", (), "has drifted", "wanted")
CHANGE = Patch("ConfigMap", "train-config", (), "the job has changed", "other")


def fought(limits: EditLimits, edits: int) -> list[float]:
    """Undo so many edits, each of which comes at once; the seconds that each had to wait."""
    waits, now = [], NOON
    for _ in range(edits):
        due = limits.not_before(KEY, PATCH, now) or now
        waits.append((due - now).total_seconds())
        now = due
        limits.written(KEY, PATCH, now)
    return waits


@pytest.fixture
def limits() -> EditLimits:
    """The object was created at noon."""
    made = EditLimits()
    made.written(KEY, CREATE, NOON)
    return made


@pytest.fixture
def fought_over(limits: EditLimits) -> EditLimits:
    """Three edits in a row were undone."""
    fought(limits, 3)
    return limits


def test_the_first_edit_is_undone_at_once_and_each_later_one_after_twice_the_time_up_to_five_minutes(
    limits: EditLimits,
) -> None:
    assert fought(limits, 12) == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert fought(limits, 100)[-1] == 300


def test_the_edits_in_a_row_are_counted(limits: EditLimits) -> None:
    counts = []
    for second in range(3):
        counts.append(limits.times(KEY, PATCH, at(second)))
        limits.written(KEY, PATCH, at(second))

    assert counts == [1, 2, 3]


def test_after_ten_minutes_of_quiet_an_edit_is_a_first_one(fought_over: EditLimits) -> None:
    assert fought_over.times(KEY, PATCH, at(3 + 600)) == 1
    assert fought_over.not_before(KEY, PATCH, at(3 + 600)) is None


def test_a_change_of_the_job_is_no_edit_and_waits_for_nothing(fought_over: EditLimits) -> None:
    assert fought_over.not_before(KEY, CHANGE, at(3)) is None
    assert fought_over.times(KEY, CHANGE, at(3)) == 0
    fought_over.written(KEY, CHANGE, at(3))
    assert fought_over.times(KEY, CHANGE, at(4)) == 1


def test_each_object_has_a_count_of_its_own(fought_over: EditLimits) -> None:
    for key, name in ((KEY, "other"), (JobKey("MPIJob", "ml", "other"), "train-config")):
        assert fought_over.not_before(key, Patch("ConfigMap", name, (), "has drifted", "wanted"), at(3)) is None


def test_an_object_that_was_made_anew_is_forgotten(fought_over: EditLimits) -> None:
    fought_over.written(KEY, CREATE, at(3))

    assert fought_over.times(KEY, PATCH, at(4)) == 1


def test_a_job_that_is_gone_is_forgotten(fought_over: EditLimits) -> None:
    for _ in range(2):
        fought_over.forget(KEY)

    assert fought_over.times(KEY, PATCH, at(4)) == 0


def test_each_field_has_a_count_of_its_own(fought_over: EditLimits) -> None:
    other = Patch("ConfigMap", "train-config", ({"op": "add", "path": "/data"},), "has drifted", "wanted")

    assert fought_over.not_before(KEY, other, at(3)) is None
    assert fought_over.times(KEY, other, at(3)) == 1


def test_an_object_that_follows_the_pods_is_patched_once_a_second_at_most() -> None:
    limits = EditLimits()
    patches = [Patch("Role", "train-launcher", (), "has drifted", digest) for digest in ("one", "two", "three")]

    assert limits.not_before(KEY, patches[0], NOON) is None
    for patch, second in zip(patches, (0, 0.5, 1), strict=True):
        due = limits.not_before(KEY, patch, at(second))
        assert due == (at(1) if second == 0.5 else None)
        if due is None:
            limits.written(KEY, patch, at(second))
    assert limits.not_before(KEY, patches[1], at(1.9)) == at(2)
