"""Log lines and metrics."""

from __future__ import annotations

import io

import pytest

from mpirt.controller.model.actions import Action, Done, Unavailable
from mpirt.controller.monitoring.logs import FORMS, LineLog
from mpirt.controller.monitoring.metrics import Metrics
from tests.unit.controller.jobs import NOON
from tests.unit.controller.world import started

LOGFMT = 'level=warning message="made again" job=ml/train tries=2 ours=true error="\\n"'
JSON = '"level":"warning","message":"made again","job":"ml/train","tries":2,"ours":true,"error":"\\n"'


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("logfmt", f"time=2026-05-04T12:00:00.000Z {LOGFMT}"),
        ("json", f'{{"time":"2026-05-04T12:00:00.000Z",{JSON}}}'),
    ],
)
def test_a_line_has_time_level_message_and_fields(form: str, line: str) -> None:
    stream = io.StringIO()

    LineLog(stream, FORMS[form], lambda: NOON).warning(
        "made again", job="ml/train", tries=2, ours=True, error="\n"
    )

    assert stream.getvalue() == line + "\n"


def test_levels_differ() -> None:
    stream = io.StringIO()
    log = LineLog(stream, FORMS["logfmt"], lambda: NOON)

    log.info("")
    log.error("x")

    assert [line.split(" ")[1] for line in stream.getvalue().splitlines()] == ["level=info", "level=error"]
    assert 'message=""' in stream.getvalue()


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
