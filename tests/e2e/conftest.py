"""
The fixtures of the e2e tests.

A cluster that can't start fails the tests that need it: it never skips them. Tests that make faults need a
cluster of our own; with MPIRT_TEST_KUBECONFIG they are deselected, and pytest says how many.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e import ground, manifests
from tests.e2e.ground import Faults, Ground, Namespace
from tests.kube import cluster as kube

_GONE_WITHIN = "180s"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not os.environ.get(ground.OWN_CLUSTER):
        return
    breaking = [item for item in items if {"fault", "own_cluster"} & set(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=breaking)
    items[:] = [item for item in items if item not in breaking]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Ground]:
    """A cluster that runs, and at the end has no namespace of this run left."""
    found = ground.find()
    yield found
    of_this_run = f"--selector={manifests.RUN_LABEL}={found.run}"
    found.kubectl("delete", "namespaces", of_this_run, f"--timeout={_GONE_WITHIN}", timeout=200)


@pytest.fixture
def own_cluster(cluster: Ground) -> Ground:
    """The cluster, for tests that look into its machine room."""
    assert cluster.is_ours
    return cluster


@pytest.fixture
def namespace(cluster: Ground, tmp_path: Path) -> Iterator[Namespace]:
    """A namespace of the test's own."""
    with ground.passing_namespace(cluster, tmp_path) as fresh:
        yield fresh


@pytest.fixture
def workers(namespace: Namespace) -> Callable[[int, str], list[str]]:
    """workers(3, "openmpi4") starts that many Ready workers and returns their pods' names."""
    return partial(namespace.workers)


@pytest.fixture
def fault(own_cluster: Ground) -> Iterator[Faults]:
    """Faults that end with the test, whatever happens in it."""
    yield Faults()
    kube.up()
