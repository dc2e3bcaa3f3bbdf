"""What a line of the log looks like."""

from __future__ import annotations

import io

import pytest

from mpirt.controller.monitoring.logs import FORMS, LineLog
from tests.unit.controller.jobs import NOON

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


def test_levels_are_told_apart() -> None:
    stream = io.StringIO()
    log = LineLog(stream, FORMS["logfmt"], lambda: NOON)

    log.info("")
    log.error("x")

    assert [line.split(" ")[1] for line in stream.getvalue().splitlines()] == ["level=info", "level=error"]
    assert 'message=""' in stream.getvalue()
