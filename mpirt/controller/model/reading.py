"""
Looking into objects as an API server gives them.

Owns: getting at a field that may be missing. These objects passed the API server's own checks; what isn't there,
or isn't of its kind, reads as nothing. What users write is read by dialects/fields.py, which complains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Body = Mapping[str, Any]

_EMPTY: Body = {}


def table(body: Body, *path: str) -> Body:
    """The mapping at the end of the path."""
    for name in path:
        found = body.get(name)
        body = found if isinstance(found, Mapping) else _EMPTY
    return body


def rows(body: Body, name: str) -> Sequence[Body]:
    """The mappings in a list."""
    found = body.get(name)
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []


def text(body: Body, name: str) -> str:
    """A text."""
    found = body.get(name)
    return found if isinstance(found, str) else ""


def number(body: Body, name: str, default: int = 0) -> int:
    """A whole number."""
    found = body.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else default


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
