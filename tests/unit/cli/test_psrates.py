"""How busy commands are, in `mpirt ps --watch`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mpirt.cli.ps.boards import Row
from mpirt.cli.ps.rates import Rates
from tests.unit.cli.boards import COMMAND, row


def between(before: list[Row], after: list[Row], *, seconds: float = 2.0) -> Rates:
    rates = Rates()
    rates.look(before, 100.0)
    rates.look(after, 100.0 + seconds)
    return rates


@pytest.mark.parametrize(
    ("cpu", "text"),
    [
        pytest.param(10.0, "0%", id="idle"),
        pytest.param(10.5, "25%", id="a quarter"),
        pytest.param(18.0, "400%", id="four processors"),
        pytest.param(9.0, "-", id="less than before: it is another one"),
        pytest.param(None, "-", id="not known"),
    ],
)
def test_a_rate_is_cpu_time_per_time(cpu: float | None, text: str) -> None:
    assert between([row(cpu=10.0)], [row(cpu=cpu)]).text(row()) == text


def test_a_rate_needs_two_looks() -> None:
    rates = Rates()
    rates.look([row(cpu=10.0)], 100.0)

    assert rates.text(row()) == "-"


def test_a_rate_needs_time() -> None:
    assert between([row(cpu=10.0)], [row(cpu=11.0)], seconds=0.0).text(row()) == "-"


@pytest.mark.parametrize(
    "changes",
    [{"pod": "w-1"}, {"agent": 72}, {"namespace": "ab"}, {"command": "date"}],
    ids=["pod", "agent", "namespace", "command"],
)
def test_a_command_is_told_from_others(changes: dict[str, Any]) -> None:
    other = Row(replace(COMMAND, cpu=11.0, **changes))

    rates = between([row(cpu=10.0)], [other])

    assert rates.text(other) == "-"


def test_a_command_that_was_not_known_for_a_while_begins_anew() -> None:
    rates = between([row(cpu=10.0)], [row(cpu=None)])
    rates.look([row(cpu=20.0)], 104.0)

    assert rates.text(row()) == "-"
