"""
The fixtures of the tests on a control plane without nodes: one plane for the run, one controller for each worker.

With pytest-xdist the tests of a file stay together, for they share what the first of them made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed import ground
from testbed.ground import Ground, Namespace
from testbed.kube import programs
from testbed.plane import plane as own_plane
from testbed.plane import shared
from testbed.plane.plane import Plane
from tests.api import controllers
from tests.api.beds import Bed, beds
from tests.api.controllers import Controller
from tests.support.times import Times, summary


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files stay whole unless the command line says otherwise."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # noqa: PLC0415  it asks

    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Plane:
    """The control plane of this run, which ends with it."""
    own = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        return shared.join(own.parent / "plane", os.getppid())
    return shared.join(own / "plane", os.getpid())


@pytest.fixture(scope="session")
def cluster(plane: Plane) -> Ground:
    """The same, as what tests do with any cluster."""
    return Ground(plane.kubectl, is_ours=False)


@pytest.fixture(scope="session")
def controller(plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller with a namespace of its own, for all tests of this worker."""
    with controllers.passing(plane, cluster, tmp_path_factory.mktemp("controller")) as installed:
        yield installed


@pytest.fixture(scope="module")
def alone(plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller of a module's own, in whose namespace nothing else is."""
    with controllers.passing(plane, cluster, tmp_path_factory.mktemp("alone")) as installed:
        yield installed


@pytest.fixture(scope="module")
def seeing(plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller of a module's own that may list nodes."""
    with controllers.passing(plane, cluster, tmp_path_factory.mktemp("seeing"), sees_nodes=True) as installed:
        yield installed


@pytest.fixture(scope="module")
def bed(plane: Plane, cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A controller that speaks through a proxy."""
    with beds(plane, cluster, tmp_path_factory.mktemp("bed"), 1, replicas=1) as [made]:
        yield made


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A plane of a module's own, whose CRDs may be replaced."""
    binaries = programs.ensure(shared.version())
    with own_plane.running(tmp_path_factory.mktemp("own") / "plane", binaries, names=("node-1", "node-2")) as made:
        yield made


@pytest.fixture
def jobs(controller: Controller) -> Namespace:
    """The namespace that the controller looks at."""
    return controller.namespace


@pytest.fixture
def namespace(cluster: Ground, tmp_path: Path) -> Iterator[Namespace]:
    """A namespace of the test's own, which no controller looks at."""
    with ground.passing_namespace(cluster, tmp_path) as fresh:
        yield fresh


@pytest.fixture
def times(request: pytest.FixtureRequest) -> Times:
    return Times(request.node.user_properties)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    summary(terminalreporter)
