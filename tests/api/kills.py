"""
Kills of a controller at its writes, as parameters of tests: all of them, and in the merge tier some of every kind.

Owns: what kind a write is, and which kills the tests that were selected ask for: a life is lived for no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def parameters(kills: Iterable[Sequence[str]], *, each: int) -> list[Any]:
    """A case for each kill, whose last word is the write; in the merge tier `each` of every kind of write."""
    return [
        pytest.param(*words, marks=pytest.mark.sample(each, of=kind_of(words[-1])), id="-".join(words))
        for words in kills
    ]


def kind_of(write: str) -> str:
    """Its method and its resource."""
    method, resource, *_ = write.replace(",", "").split()
    return f"{method} {resource}"


def asked(request: pytest.FixtureRequest, *parameters: str) -> set[tuple[str, ...]]:
    """The kills of the tests of this file that were selected, by the names of their parameters."""
    items = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    specs = [item.callspec.params for item in items]
    return {tuple(spec[name] for name in parameters) for spec in specs if spec.keys() >= set(parameters)}
