"""What is counted of jobs."""

from __future__ import annotations

from mpirt.controller.model.actions import Action, Done, Unavailable
from mpirt.controller.monitoring.metrics import Metrics
from tests.unit.controller.started import started


def counted(metrics: Metrics) -> dict[str, float]:
    prefix = "mpi_operator_jobs_"
    lines = [line.split() for line in metrics.page().decode().splitlines() if line.startswith(prefix)]
    return {name.removeprefix(prefix).removesuffix("_total"): float(value) for name, value in lines}


def of_life(kind: str, reason: str = "") -> list[Action]:
    world = started()
    world.finish(kind, reason=reason)
    world.later(10)
    return world.done


def test_a_job_that_succeeds() -> None:
    metrics = Metrics()
    for action in of_life("Complete"):
        metrics.acted(action, Done())

    assert counted(metrics) == {"created": 1, "successful": 1, "failed": 0}


def test_a_job_that_fails_for_whatever_reason() -> None:
    metrics = Metrics()
    for reason in ("BackoffLimitExceeded", "DeadlineExceeded"):
        for action in of_life("Failed", reason):
            metrics.acted(action, Done())

    assert counted(metrics) == {"created": 2, "successful": 0, "failed": 2}


def test_a_status_that_could_not_be_written_is_not_counted() -> None:
    metrics = Metrics()
    for action in of_life("Complete"):
        metrics.acted(action, Unavailable("no answer"))

    assert counted(metrics) == {"created": 0, "successful": 0, "failed": 0}
