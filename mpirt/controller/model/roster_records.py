"""
Serializes a roster for the job's status, and reads it back.

Owns: the names of the fields. The wanted workers are in `targetWorkers`, as et-operator has them; the rest is in
`scaling`, which only this controller writes. A field that can't be read counts as missing.
"""

from __future__ import annotations

from typing import Any

from mpirt.controller.model.reading import Body, moment, number, rows, table, text, texts, write_time
from mpirt.controller.model.roster import Change, Drain, Roster, Source

_NAMES, _REST = "targetWorkers", "scaling"
_SOURCES = frozenset(Source)


def write_roster(roster: Roster) -> dict[str, Any]:
    """Return the fields of a status that hold the roster."""
    rest: dict[str, Any] = {"highestNumber": roster.highest, "replicas": roster.replicas}
    if roster.pending:
        rest["pending"] = list(roster.pending)
    if roster.change is not None:
        rest["change"] = _change(roster.change)
    if roster.drains:
        rest["drains"] = [_drain(one) for one in roster.drains]
    if roster.replaced:
        rest["replaced"] = roster.replaced
    if roster.replaced_at is not None:
        rest["replacedTime"] = write_time(roster.replaced_at)
    return {_NAMES: list(roster.names), _REST: rest}


def read_roster(status: Body) -> Roster | None:
    """Return the roster in a status; None if it holds none, for example because the CRD drops the field."""
    if _REST not in status:
        return None
    rest = table(status, _REST)
    return Roster(
        names=texts(status, _NAMES),
        highest=number(rest, "highestNumber", -1),
        replicas=number(rest, "replicas"),
        pending=texts(rest, "pending"),
        change=_read_change(table(rest, "change")),
        drains=tuple(one for row in rows(rest, "drains") if (one := _read_drain(row)) is not None),
        replaced=number(rest, "replaced"),
        replaced_at=moment(rest, "replacedTime"),
    )


def _change(change: Change) -> dict[str, Any]:
    row: dict[str, Any] = {"source": str(change.source), "since": write_time(change.since)}
    row |= {name: value for name, value in (("name", change.name), ("uid", change.uid)) if value}
    row |= {name: list(of) for name, of in (("leaving", change.leaving), ("joining", change.joining)) if of}
    if change.seconds is not None:
        row["timeout"] = change.seconds
    row |= {name: True for name, of in (("force", change.force), ("committed", change.committed)) if of}
    return row


def _read_change(row: Body) -> Change | None:
    source, since = text(row, "source"), moment(row, "since")
    if source not in _SOURCES or since is None:
        return None
    return Change(
        source=Source(source),
        since=since,
        name=text(row, "name"),
        uid=text(row, "uid"),
        seconds=number(row, "timeout") if "timeout" in row else None,
        force=row.get("force") is True,
        leaving=texts(row, "leaving"),
        joining=texts(row, "joining"),
        committed=row.get("committed") is True,
    )


def _drain(drain: Drain) -> dict[str, Any]:
    row: dict[str, Any] = {"worker": drain.name, "source": str(drain.source), "why": drain.why}
    if drain.until is not None:
        row["until"] = write_time(drain.until)
    if drain.after:
        row["after"] = drain.after
    if drain.committed:
        row["committed"] = True
    return row


def _read_drain(row: Body) -> Drain | None:
    source = text(row, "source")
    if source not in _SOURCES:
        return None
    until, committed = moment(row, "until"), row.get("committed") is True
    return Drain(text(row, "worker"), Source(source), text(row, "why"), until, text(row, "after"), committed)
