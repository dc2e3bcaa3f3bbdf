"""
Reads fields of objects as the API server returns them.

Owns: times, and how a long text is shortened. All other fields are read with mpirt/objects.py, as in all programs.
What users write is read with dialects/fields.py, which reports invalid fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mpirt.objects import number, rows, table, text, texts

__all__ = ["Body", "moment", "number", "parse_time", "rows", "shortened", "table", "text", "texts", "write_time"]

Body = Mapping[str, Any]


def moment(body: Body, name: str) -> datetime | None:
    """Return the time in a field; None if it is missing or invalid."""
    return parse_time(text(body, name))


def parse_time(written: str) -> datetime | None:
    """Parse a time as Kubernetes writes it; None if it is invalid."""
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def write_time(when: datetime) -> str:
    """Return a time as Kubernetes writes it: whole seconds, UTC."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shortened(message: str, most: int) -> str:
    """Return the message, cut to at most `most` characters."""
    return message if len(message) <= most else f"{message[: most - 4]} ..."
