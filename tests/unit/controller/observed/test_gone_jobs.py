"""How a launcher Job was when its deletion was requested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mpirt.controller.model.spec import JobKey
from mpirt.controller.observed.departed import GoneJobs, end_of

Body = dict[str, Any]

KEY = JobKey("MPIJob", "ml", "train")


def job(*, ended: str = "", deleted: bool = False, uid: str = "one") -> Body:
    """A launcher Job; `ended`: the type of its last condition."""
    conditions = [{"type": ended, "status": "True"}] if ended else []
    return {
        "metadata": {"uid": uid, **({"deletionTimestamp": "2026-05-04T12:00:00Z"} if deleted else {})},
        "status": {"conditions": [{"type": "Suspended", "status": "False"}, *conditions]},
    }


RUNS, ENDED = job(), job(ended="Complete")
GOING, ENDED_AND_GOING = job(deleted=True), job(ended="Complete", deleted=True)


def seen(*states: Body | None) -> list[Mapping[str, Any]]:
    """What is known after a Job had these states, one after the other; None: it is gone, as it was last."""
    gone, before = GoneJobs(), None
    for state in states:
        if state is None:
            assert before is not None
            gone.removed(KEY, before, before)
        else:
            gone.put(KEY, before, state)
            before = state
    return gone.of(KEY)


@pytest.mark.parametrize(
    ("states", "known"),
    [
        pytest.param([RUNS], [], id="it runs"),
        pytest.param([RUNS, ENDED], [], id="it has ended"),
        pytest.param([RUNS, None], [RUNS], id="deleted at once"),
        pytest.param([RUNS, ENDED, None], [ENDED], id="ended, then deleted at once"),
        pytest.param([RUNS, GOING], [RUNS], id="it is being deleted"),
        pytest.param([RUNS, ENDED_AND_GOING, None], [RUNS], id="it ended with its deletion"),
        pytest.param([RUNS, GOING, ENDED_AND_GOING, None], [RUNS], id="it ended during its deletion"),
        pytest.param([RUNS, ENDED, ENDED_AND_GOING, None], [ENDED], id="ended, then deleted"),
        pytest.param([GOING, None], [GOING], id="it was being deleted when it was first seen"),
        pytest.param([ENDED_AND_GOING, None], [{}], id="and had ended, before that or by it"),
        pytest.param([RUNS, GOING, None, job(uid="two")], [], id="it has a successor"),
        pytest.param([RUNS, job(uid="two", deleted=True)], [job(uid="two", deleted=True)], id="which is deleted"),
    ],
)
def test_what_counts_is_the_state_before_the_deletion(states: list[Body | None], known: list[Body]) -> None:
    assert seen(*states) == known


def test_an_end_that_comes_with_the_last_word_of_a_job_that_is_deleted_at_once_counts() -> None:
    gone = GoneJobs()

    gone.removed(KEY, RUNS, ENDED)

    assert gone.of(KEY) == [ENDED]


def test_an_end_that_comes_with_the_last_word_of_a_longer_deletion_does_not() -> None:
    gone = GoneJobs()

    gone.removed(KEY, RUNS, ENDED_AND_GOING)

    assert gone.of(KEY) == [RUNS]


def test_one_that_is_missed_is_gone_unless_more_is_known() -> None:
    gone = GoneJobs()
    gone.miss(KEY)
    assert gone.of(KEY) == [{}]

    gone.removed(KEY, RUNS, RUNS)
    gone.miss(KEY)
    assert gone.of(KEY) == [RUNS]

    gone.forget(KEY)
    assert gone.of(KEY) == []


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_the_end_of_a_job(kind: str) -> None:
    assert end_of(job(ended=kind)) == {"type": kind, "status": "True"}
    assert end_of(job(ended="FailureTarget")) is None
