"""A controller for the whole run, from its real image."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import Deployed
from tests.e2e.ground import Ground, Namespace


@pytest.fixture(scope="session")
def controller(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Two replicas of the controller in a namespace of the run's own, which goes with the run."""
    installed = deployed.install(cluster, tmp_path_factory.mktemp("controller"))
    yield installed
    installed.remove()


@pytest.fixture
def jobs(controller: Deployed) -> Namespace:
    """The namespace that the controller looks at."""
    return controller.namespace
