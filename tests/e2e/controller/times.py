"""How fast the controller was: rows that tests add, and the table of them at the end of the run."""

from __future__ import annotations

import pytest

from tests.kube.status import table

_ROWS = pytest.StashKey[list[list[str]]]()
_HEADING = ["WHAT", "SECONDS"]


class Times:
    """Collects what is printed at the end of the run."""

    def __init__(self, rows: list[list[str]]) -> None:
        self._rows = rows

    def add(self, what: str, seconds: float) -> None:
        self._rows.append([what, f"{seconds:.2f}"])


def times_of(config: pytest.Config) -> Times:
    return Times(config.stash.setdefault(_ROWS, []))


def summary(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table once, and nothing without rows."""
    rows = config.stash.get(_ROWS, [])
    if rows:
        reporter.section("from the event to what the controller promises after it")
        for line in table([_HEADING, *rows]):
            reporter.line(line)
        rows.clear()
