"""
Digests, to detect changes.

A digest of a template covers what the user wrote, never what was built from it: another version of the controller
builds other pods, and must not disturb a running job.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(*parts: Any) -> str:
    """Return a digest that is the same for the same values, on every machine and in every process."""
    written = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()[:16]
