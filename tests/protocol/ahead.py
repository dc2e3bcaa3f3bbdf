"""
What waits for seconds, done for all selected tests at once before the first of them.

Owns: finding it in the parameters of the tests. Who does it, and how many at once, is elsewhere.
"""

from __future__ import annotations

from typing import TypeVar

import pytest

_Kind = TypeVar("_Kind")
_Other = TypeVar("_Other")


def selected(session: pytest.Session, kind: type[_Kind]) -> list[_Kind]:
    """Everything of that kind in the parameters of the tests that were selected."""
    return [value for each in _parameters(session) for value in each if isinstance(value, kind)]


def selected_pairs(session: pytest.Session, kind: type[_Kind], other: type[_Other]) -> list[tuple[_Kind, _Other]]:
    """Every two of these kinds that are parameters of one of the tests that were selected."""
    return [
        (one, another)
        for each in _parameters(session)
        for one in each
        if isinstance(one, kind)
        for another in each
        if isinstance(another, other)
    ]


def _parameters(session: pytest.Session) -> list[list[object]]:
    specs = [getattr(item, "callspec", None) for item in session.items]
    return [list(spec.params.values()) for spec in specs if spec is not None]
