"""
Reads fields of objects as the API server returns them.

Owns: times and durations, how a long text is shortened, how deeply values may be nested, and digests, which detect
changes. All other fields are read with mpirt/objects.py, as in all programs. What users write is read with
fields.py, which reports invalid fields.

Users may write any time and any number, into templates, annotations and statuses, and Python's dates end with the
year 9999. So both are cut to what a plan can calculate with.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from mpirt.objects import number, rows, table, text, texts

__all__ = [
    "Body",
    "decode",
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
    found = body.get(name)
    return parse_time(found) if isinstance(found, str) else None


def uid_of(body: Body) -> str:
    """Return the uid of an object."""
    return text(table(body, "metadata"), "uid")


def version_of(body: Body) -> str:
    """Return the resourceVersion of an object."""
    return text(table(body, "metadata"), "resourceVersion")


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


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are set: not None, nor an empty text or list. Times are as Kubernetes writes them."""
    written = ((name, write_time(of) if isinstance(of, datetime) else of) for name, of in fields.items())
    return {name: of for name, of in written if of not in (None, "", [])}


def shortened(message: str, most: int) -> str:
    """Return the message, cut to at most `most` characters."""
    return message if len(message) <= most else f"{message[: most - 4]} ..."


# Objects of Kubernetes have some twenty levels. Code that walks through values recursively raises RecursionError
# somewhere between 300 and 10,000 levels.
DEEPEST = 100


def pruned(value: Any, levels: int = DEEPEST) -> Any:
    """Return the value with None in place of all parts below so many levels."""
    if isinstance(value, dict):
        return {name: pruned(one, levels - 1) for name, one in value.items()} if levels else None
    if isinstance(value, list):
        return [pruned(one, levels - 1) for one in value] if levels else None
    return value


def digest(*parts: Any) -> str:
    """
    Return a digest that is the same for the same values, on every machine and in every process.

    A digest of a template covers what the user wrote, never what was built from it: another version of the
    controller builds other pods, and must not disturb a running job.
    """
    written = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()[:16]


# An object within a list or an event is read to more levels than the cache keeps, so that what the cache holds
# does not depend on how the object arrived.
_LEVELS = 2 * DEEPEST
# A string, or a bracket outside of one. Possessive, so that the time is linear whatever the text.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def decode(text: bytes) -> Any:
    """
    Return the value of a JSON text; null stands for parts that are nested too deeply. Raises ValueError.

    The API server stores 10,000 levels of what it does not look into, such as an object's managedFields, and
    json.loads raises RecursionError at a depth that depends on the version of Python, 1,000 in 3.11. One such
    object must not keep the others of its list from being read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        return json.loads(_pruned(text))


def _pruned(text: bytes) -> bytes:
    """Return the text with null in place of all parts below the deepest level."""
    kept, depth, start = list[bytes](), 0, 0
    for token in _TOKEN.finditer(text):
        step = _STEPS.get(token[0], 0)
        if step > 0 and depth == _LEVELS:
            kept += (text[start : token.start()], b"null")
        if step < 0 and depth == _LEVELS + 1:
            start = token.end()
        depth += step
    return b"".join(kept) + (text[start:] if depth <= _LEVELS else b"")
