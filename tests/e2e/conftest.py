"""
The fixtures of the e2e tests.

A cluster that can't start fails the tests that need it: it never skips them. Tests that make faults need a
cluster of our own; with MPIRT_TEST_KUBECONFIG they are left out, and pytest says how many. They run alone, as do
tests with that mark, on a cluster that others do not use; the others run side by side, in several processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from testbed import ground, manifests
from testbed.ground import Faults, Ground, Namespace, PodFaults
from testbed.kube import buildcache, paths
from testbed.kube import cluster as kube
from tests.support import switchboards
from tests.support.times import Times, summary

_GONE_WITHIN = "180s"
_LEFT_OUT = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "fault" in _fixtures_of(item):
            item.add_marker(pytest.mark.alone)
    if not os.environ.get(paths.OWN_CLUSTER):
        return
    breaking = [item for item in items if {"fault", "own_cluster"} & _fixtures_of(item)]
    config.hook.pytest_deselected(items=breaking)
    config.stash[_LEFT_OUT] = len(breaking)
    items[:] = [item for item in items if item not in breaking]


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    left_out = config.stash.get(_LEFT_OUT, 0)
    return [f"left out: {left_out} tests that need a cluster of our own"] if left_out else []


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the switchboard of all agents that this process starts."""
    yield from switchboards.place(tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="session", autouse=True)
def by_an_own_switchboard(board: Path) -> Iterator[None]:
    """In the default place there may be one of another checkout's tests, which has that one's code."""
    with switchboards.used(board):
        yield


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """
    A running cluster. At the end, the namespaces of this process are removed from a user's cluster. A second
    cluster of ours is removed itself, so that it takes no CPU time from the tests that follow.
    """
    found = _find(tmp_path_factory.getbasetemp())
    yield found
    if found.is_ours and not paths.IS_FIRST:
        kube.down()
        return
    of_this_run = f"--selector={manifests.RUN_LABEL}={found.run}"
    how = "--wait=false" if found.is_ours else f"--timeout={_GONE_WITHIN}"
    found.kubectl("delete", "namespaces", of_this_run, how, timeout=200)


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
def pod_fault(own_cluster: Ground) -> PodFaults:
    """What happens to the test's own pods."""
    return PodFaults()


@pytest.fixture
def fault(own_cluster: Ground) -> Iterator[Faults]:
    """Faults that end with the test, whatever happens in it."""
    yield Faults()
    kube.up()


@pytest.fixture
def times(request: pytest.FixtureRequest) -> Times:
    return Times(request.node.user_properties)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    summary(terminalreporter)


def _fixtures_of(item: pytest.Item) -> set[str]:
    return set(getattr(item, "fixturenames", ()))


def _find(base: Path) -> Ground:
    """
    The cluster, healed once in a run.

    Of the processes of pytest-xdist that use one, whose folders are beside each other, the first one heals it and
    the others wait for it: healing writes the kubeconfig anew, which the tests of the others would be reading.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return ground.find()
    healed = base.parent / f"healed-{paths.NAME}"
    with buildcache.exclusive(healed.with_suffix(".lock")):
        found = ground.find(heal=not healed.exists())
        healed.touch()
    return found
