"""A controller for all tests of this folder, from its real image, and the table of how fast it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import Deployed
from tests.e2e.ground import Ground, Namespace
from tests.kube.status import table

_ROWS = pytest.StashKey[list[list[str]]]()
_HEADING = ["WHAT", "SECONDS"]


class Times:
    """Collects what is printed at the end of the run."""

    def __init__(self, rows: list[list[str]]) -> None:
        self._rows = rows

    def add(self, what: str, seconds: float) -> None:
        self._rows.append([what, f"{seconds:.2f}"])


@pytest.fixture(scope="package")
def controller(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Two replicas of it, in a namespace of their own; gone before the cluster's own tests take that down."""
    with deployed.passing(cluster, tmp_path_factory.mktemp("controller")) as installed:
        yield installed


@pytest.fixture
def jobs(controller: Deployed) -> Namespace:
    """The namespace that the controller looks at."""
    return controller.namespace


@pytest.fixture
def times(request: pytest.FixtureRequest) -> Times:
    return Times(request.config.stash.setdefault(_ROWS, []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(_ROWS, [])
    if rows:
        terminalreporter.section("from the event to what the controller promises after it")
        for line in table([_HEADING, *rows]):
            terminalreporter.line(line)
