"""How deeply the values of an object may be nested."""

from __future__ import annotations

from typing import Any

from mpirt.controller.model.reading import DEEPEST, pruned


def nested(levels: int, innermost: Any) -> Any:
    """So many levels, by turns a list and an object."""
    value = innermost
    for level in reversed(range(levels)):
        value = {"a": value} if level % 2 else [value]
    return value


def test_a_value_within_the_limit_stays() -> None:
    value = {"name": "x", "rows": [1, 2.5, None, True, {}, []], "deep": nested(DEEPEST - 1, 1)}

    assert pruned(value) == value


def test_nothing_is_left_of_what_is_below_the_limit() -> None:
    assert pruned(nested(DEEPEST + 1, 1)) == nested(DEEPEST, None)
    assert pruned(nested(5_000, 1)) == nested(DEEPEST, None)


def test_fields_beside_it_stay() -> None:
    assert pruned({"deep": nested(5_000, 1), "after": {"b": [1]}})["after"] == {"b": [1]}
