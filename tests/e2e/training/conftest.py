"""A controller for all tests of this folder, from its real image."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.ground import Ground
from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import Deployed


@pytest.fixture(scope="package")
def controller(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Two replicas of it, in a namespace of their own; each process of a run has its own."""
    with deployed.passing(cluster, tmp_path_factory.mktemp("controller"), sees_nodes=True) as installed:
        yield installed
