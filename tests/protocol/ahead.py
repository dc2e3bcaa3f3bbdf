"""
What waits for seconds, done for all selected tests at once before the first of them.

Owns: finding it in the parameters of the tests. Who does it, and how many at once, is elsewhere.
"""

from __future__ import annotations

from typing import TypeVar

import pytest

_Kind = TypeVar("_Kind")


def selected(session: pytest.Session, kind: type[_Kind]) -> list[_Kind]:
    """Everything of that kind in the parameters of the tests that were selected."""
    specs = [getattr(item, "callspec", None) for item in session.items]
    parameters = [value for spec in specs if spec is not None for value in spec.params.values()]
    return [value for value in parameters if isinstance(value, kind)]
