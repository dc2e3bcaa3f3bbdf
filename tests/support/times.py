"""How fast the controller was: rows that tests add, and the table of them at the end of the run."""

from __future__ import annotations

import pytest

from testbed.kube.status import table

_PROPERTY = "time"
_HEADING = ["WHAT", "SECONDS"]


class Times:
    """Collects what is printed at the end, as properties of the test: pytest-xdist passes them on."""

    def __init__(self, properties: list[tuple[str, object]]) -> None:
        self._properties = properties

    def add(self, what: str, seconds: float) -> None:
        self._properties.append((_PROPERTY, [what, f"{seconds:.2f}"]))


def summary(reporter: pytest.TerminalReporter) -> None:
    """Print the table; nothing without rows."""
    reports = [report for outcome in ("passed", "failed") for report in reporter.getreports(outcome)]
    found = [
        row for report in reports for name, row in getattr(report, "user_properties", ()) if name == _PROPERTY
    ]
    rows: list[list[str]] = [list(row) for row in found]
    if rows:
        reporter.section("from the event to what the controller promises after it")
        for line in table([_HEADING, *rows]):
            reporter.line(line)
