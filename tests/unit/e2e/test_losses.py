"""What counts as a lie of a job that has lost a worker, and what does not."""

from __future__ import annotations

import pytest

from tests.e2e.chaos.losses import Case, Line, Loss, Outcome, finished_ranks, rows

FIRST, SECOND = "job-worker-0 is one of 2", "job-worker-1 is one of 2"
CASE = Case("openmpi5", Loss.FORCED, Line.PLAIN, retries=0, moment=1.0)


def outcome(end: str, *finished: str) -> Outcome:
    return Outcome(CASE, "code 0", "WorkerLost", end, "WorkerLost", frozenset(finished), "")


@pytest.mark.parametrize(
    ("end", "finished", "is_lie"),
    [
        ("Succeeded", (), True),
        ("Succeeded", (FIRST,), True),
        ("Succeeded", (FIRST, SECOND), False),
        ("Failed", (), False),
        ("Failed", (FIRST, SECOND), False),
    ],
)
def test_a_success_without_all_ranks_is_a_lie(end: str, finished: tuple[str, ...], *, is_lie: bool) -> None:
    assert outcome(end, *finished).is_lie == is_lie


def test_ranks_of_a_run_that_was_followed_by_another_do_not_count() -> None:
    log = [FIRST, "ended with 1", SECOND]

    assert finished_ranks(log) == {SECOND}


def test_the_table_counts_equal_ends() -> None:
    _, row = rows([outcome("Failed"), outcome("Failed")])

    lost = ["WorkerLost", "Failed", "WorkerLost"]
    assert row == ["openmpi5", "worker deleted by force", "mpirun", "code 0", *lost, "2"]
