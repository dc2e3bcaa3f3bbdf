"""
Serializes a job's history: for its status or, if the CRD drops unknown fields, for an annotation.

Owns: the names of the fields, and reading them back. A field that can't be read counts as missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mpirt.controller.model.attempts import Attempt, Disbelieved, History, How, PodEnd, Stop
from mpirt.controller.model.reading import Body, moment, number, rows, table, text, write_time


def write_attempts(history: History) -> list[dict[str, Any]]:
    """Return the attempts as a list for the status."""
    return [_attempt(one) for one in history.attempts]


def read_history(body: Body) -> History | None:
    """Return the history in a status; None if it holds none, for example because the CRD drops the field."""
    if not isinstance(body.get("attempts"), list):
        return None
    attempts = tuple(_read_attempt(row) for row in rows(body, "attempts"))
    disbelieved = _read_disbelieved(table(body, "disbelieved"))
    return History(attempts, number(body, "attemptsForgotten"), text(body, "rerun"), disbelieved)


def write_history(history: History) -> dict[str, Any]:
    """Return the fields of a status that hold the history."""
    return {
        "attempts": write_attempts(history),
        **({"attemptsForgotten": history.forgotten} if history.forgotten else {}),
        **({"rerun": history.rerun} if history.rerun else {}),
        **({"disbelieved": _disbelieved(history.disbelieved)} if history.disbelieved else {}),
    }


def dump_history(history: History) -> str:
    """Return the same fields as one JSON text."""
    return json.dumps(write_history(history), sort_keys=True, separators=(",", ":"))


def load_history(written: str) -> History | None:
    """Return the history in such a text; None if it holds none."""
    try:
        found = json.loads(written)
    except ValueError:
        return None
    return read_history(found) if isinstance(found, Mapping) else None


def _attempt(one: Attempt) -> dict[str, Any]:
    row: dict[str, Any] = {"launcher": one.launcher}
    if one.node:
        row["node"] = one.node
    times = {"creationTime": one.created, "startTime": one.started}
    row |= {name: write_time(when) for name, when in times.items() if when is not None}
    if one.stopped is not None:
        row["stopped"] = str(one.stopped)
    if one.workers:
        row["workers"] = one.workers
    if one.ended is not None:
        row["end"] = _end(one.ended)
    if one.deaths:
        row["deaths"] = [_end(death) for death in one.deaths]
    if one.more:
        row["moreDeaths"] = one.more
    return row


def _disbelieved(one: Disbelieved) -> dict[str, Any]:
    return {"job": one.job, "failures": one.failures, "final": one.final}


def _read_disbelieved(row: Body) -> Disbelieved | None:
    return Disbelieved(text(row, "job"), number(row, "failures"), row.get("final") is True) if row else None


def _end(one: PodEnd) -> dict[str, Any]:
    row: dict[str, Any] = {"pod": one.pod, "how": str(one.how), "reportedBy": one.reporter}
    texts = {"node": one.node, "container": one.container, "reason": one.reason, "message": one.message}
    row |= {name: value for name, value in texts.items() if value}
    if one.code is not None:
        row["code"] = one.code
    if one.at is not None:
        row["time"] = write_time(one.at)
    return row


def _read_attempt(row: Body) -> Attempt:
    end = row.get("end")
    stopped = text(row, "stopped")
    return Attempt(
        launcher=text(row, "launcher"),
        node=text(row, "node"),
        started=moment(row, "startTime"),
        ended=_read_end(end) if isinstance(end, Mapping) else None,
        stopped=Stop(stopped) if stopped in frozenset(Stop) else None,
        workers=text(row, "workers"),
        deaths=tuple(_read_end(death) for death in rows(row, "deaths")),
        more=number(row, "moreDeaths"),
        created=moment(row, "creationTime"),
    )


def _read_end(row: Body) -> PodEnd:
    how = text(row, "how")
    return PodEnd(
        pod=text(row, "pod"),
        how=How(how) if how in frozenset(How) else How.GONE,
        node=text(row, "node"),
        container=text(row, "container"),
        code=number(row, "code") if "code" in row else None,
        reason=text(row, "reason"),
        message=text(row, "message"),
        at=moment(row, "time"),
    )
