"""
Reading an object of the API server's field by field, where a field of the wrong kind counts as missing. No I/O.

Owns: the kinds of field that all programs read. Who must complain of a wrong field reads it with these and
complains itself; what users write is read by fields.py, which does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]


def table(body: Body, *path: str) -> Body:
    """The fields at the end of a path."""
    found: Any = body
    for name in path:
        found = found.get(name)
        if not isinstance(found, Mapping):
            return {}
    fields: Body = found
    return fields


def rows(body: Body, name: str) -> list[Body]:
    """A field that holds a list of fields."""
    found = body.get(name)
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []


def text(body: Body, name: str) -> str:
    """A field that holds text."""
    found = body.get(name)
    return found if isinstance(found, str) else ""


def texts(body: Body, name: str) -> tuple[str, ...]:
    """A field that holds a list of texts; others in it count as missing."""
    found = body.get(name)
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def number(body: Body, name: str, default: int = 0) -> int:
    """A field that holds a whole number."""
    found = body.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else default
