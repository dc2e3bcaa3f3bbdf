"""
Reading an object of the API server's field by field, where a field of the wrong kind counts as missing. No I/O.

Owns: the three kinds of field. Who must complain of a wrong field reads it with these and complains itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def table(body: Mapping[str, object], name: str) -> Mapping[str, object]:
    """A field that holds fields."""
    found = body.get(name)
    return found if isinstance(found, dict) else {}


def rows(body: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    """A field that holds a list of fields."""
    found = body.get(name)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def text(body: Mapping[str, object], name: str) -> str:
    """A field that holds text."""
    found = body.get(name)
    return found if isinstance(found, str) else ""
