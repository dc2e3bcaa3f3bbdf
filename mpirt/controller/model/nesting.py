"""
How deeply the values of an object may be nested.

Owns: the limit. Objects of Kubernetes have some twenty levels. Code that walks through values recursively raises
RecursionError somewhere between 300 and 10,000 levels.
"""

from __future__ import annotations

from typing import Any

DEEPEST = 100


def pruned(value: Any, levels: int = DEEPEST) -> Any:
    """Return the value with None in place of all parts below so many levels."""
    if isinstance(value, dict):
        return {name: pruned(one, levels - 1) for name, one in value.items()} if levels else None
    if isinstance(value, list):
        return [pruned(one, levels - 1) for one in value] if levels else None
    return value
