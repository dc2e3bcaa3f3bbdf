"""
Looking into objects as an API server gives them.

Owns: times, and how a long text is shortened. All other fields are read as all programs read them
(mpirt/objects.py). What users write is read by dialects/fields.py, which complains of what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mpirt.objects import number, rows, table, text

__all__ = ["Body", "moment", "number", "parse_time", "rows", "shortened", "table", "text", "write_time"]

Body = Mapping[str, Any]


def moment(body: Body, name: str) -> datetime | None:
    """A time."""
    return parse_time(text(body, name))


def parse_time(written: str) -> datetime | None:
    """A time as Kubernetes writes it, or nothing."""
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def write_time(when: datetime) -> str:
    """A time as Kubernetes writes it: whole seconds, UTC."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shortened(message: str, most: int) -> str:
    """The message, or its beginning."""
    return message if len(message) <= most else f"{message[: most - 4]} ..."
