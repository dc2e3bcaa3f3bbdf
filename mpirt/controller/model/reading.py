"""
Reads fields of objects as the API server returns them.

Owns: times and durations, and how a long text is shortened. All other fields are read with mpirt/objects.py, as in
all programs. What users write is read with dialects/fields.py, which reports invalid fields.

Users may write any time and any number, into templates, annotations and statuses, and Python's dates end with the
year 9999. So both are cut to what a plan can calculate with.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from mpirt.objects import number, rows, table, text, texts

__all__ = [
    "Body",
    "duration",
    "moment",
    "number",
    "parse_time",
    "rows",
    "shortened",
    "table",
    "text",
    "texts",
    "write_time",
]

Body = Mapping[str, Any]

_EARLIEST, _LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_LONGEST = 100 * 365 * 24 * 3600


def moment(body: Body, name: str) -> datetime | None:
    """Return the time in a field; None if it is missing or invalid."""
    return parse_time(text(body, name))


def parse_time(written: str) -> datetime | None:
    """Parse a time as Kubernetes writes it, cut to the years 1900 to 9000; None if it is invalid."""
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return max(_EARLIEST, min(found if found.tzinfo else found.replace(tzinfo=UTC), _LATEST))


def duration(seconds: int) -> timedelta:
    """Return so many seconds, cut to a hundred years."""
    return timedelta(seconds=max(-_LONGEST, min(seconds, _LONGEST)))


def write_time(when: datetime) -> str:
    """Return a time as Kubernetes writes it: whole seconds, UTC."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shortened(message: str, most: int) -> str:
    """Return the message, cut to at most `most` characters."""
    return message if len(message) <= most else f"{message[: most - 4]} ..."
