"""A controller for all tests of this folder, from its real image."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import Deployed
from tests.e2e.ground import Ground


@pytest.fixture(scope="package")
def controller(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Two replicas of it, in a namespace of their own; each process of a run has its own."""
    name = deployed.job_name("mpirt-test-nodes")
    cluster.kubectl("create", "clusterrole", name, "--verb=list,watch", "--resource=nodes")
    cluster.kubectl(
        "create", "clusterrolebinding", name, f"--clusterrole={name}", "--group=system:serviceaccounts"
    )
    with deployed.passing(cluster, tmp_path_factory.mktemp("controller")) as installed:
        yield installed
    cluster.kubectl("delete", f"clusterrole/{name}", f"clusterrolebinding/{name}")
