"""
JSON of the API server into values, however deeply stored objects are nested.

Owns: what becomes of a text that is nested too deeply. The API server stores 10,000 levels of what it does not
look into, such as an object's managedFields, and json.loads raises RecursionError at a depth that depends on the
version of Python, 1,000 in 3.11. One such object must not keep the others of its list from being read.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mpirt.controller.model.reading import DEEPEST

# An object within a list or an event is read to more levels than the cache keeps, so that what the cache holds
# does not depend on how the object arrived.
_LEVELS = 2 * DEEPEST
# A string, or a bracket outside of one. Possessive, so that the time is linear whatever the text.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def decode(text: bytes) -> Any:
    """Return the value; null stands for parts that are nested too deeply to be read. Raises ValueError."""
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
