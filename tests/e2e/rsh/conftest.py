"""The table of how agents end, which is printed after the tests that fill it."""

from __future__ import annotations

import pytest

from tests.e2e.rsh.agent import Ended
from tests.kube.status import table

_ROWS = pytest.StashKey[list[list[str]]]()
_HEADING = ["EVENT", "MPIRT-RSH", "CODE", "KUBECTL EXEC", "CODE"]


class Endings:
    """Collects rows of the table."""

    def __init__(self, rows: list[list[str]]) -> None:
        self._rows = rows

    def add(self, event: str, ours: Ended, theirs: Ended) -> None:
        self._rows.append([event, *_shown(ours), *_shown(theirs)])


@pytest.fixture
def endings(request: pytest.FixtureRequest) -> Endings:
    return Endings(request.config.stash.setdefault(_ROWS, []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(_ROWS, [])
    if rows:
        terminalreporter.section("from the event to the agent's end")
        for line in table([_HEADING, *rows]):
            terminalreporter.line(line)


def _shown(ended: Ended) -> list[str]:
    if ended.code is None:
        return [f"none in {ended.seconds:.0f} s", "-"]
    return [f"{ended.seconds:.1f} s", str(ended.code)]
