"""Log lines and metrics."""

from __future__ import annotations

import io

import pytest

from mpirt.controller.model.actions import Action, Done, Outcome, Unavailable
from mpirt.controller.monitoring.logs import FORMS, LineLog
from mpirt.controller.monitoring.metrics import Metrics
from tests.unit.controller.jobs import NOON
from tests.unit.controller.world import ONCE, started

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


def of_life(kind: str, reason: str) -> list[Action]:
    world = started(runPolicy=ONCE)
    world.finish(kind, reason=reason)
    world.later(10)
    return world.done


DONE, AWAY = Done(), Unavailable("no answer")


@pytest.mark.parametrize(
    ("lives", "came", "counts"),
    [
        pytest.param([("Complete", "")], DONE, (1, 1, 0), id="success"),
        pytest.param(
            [("Failed", "BackoffLimitExceeded"), ("Failed", "DeadlineExceeded")], DONE, (2, 0, 2), id="failures"
        ),
        pytest.param([("Complete", "")], AWAY, (0, 0, 0), id="not written"),
    ],
)
def test_jobs_are_counted_when_their_status_is_written(
    lives: list[tuple[str, str]], came: Outcome, counts: tuple[int, int, int]
) -> None:
    metrics = Metrics()
    for life in lives:
        for action in of_life(*life):
            metrics.acted(action, came)

    assert counted(metrics) == dict(zip(("created", "successful", "failed"), counts, strict=True))
