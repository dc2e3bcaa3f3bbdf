"""A server with three workers, the program beside it, and the scenes that are played ahead of their tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.certificates import Authority
from tests.apiserver.server import ApiServer
from tests.protocol.ahead import selected
from tests.protocol.discover.program import Ended, Program, worker
from tests.protocol.discover.scenes import Scene, Scenes

# Each case starts a Python. So many of a function are in the merge tier; the full tier, a slice of which CI runs
# each time, has all.
_SAMPLE = 3


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_own = item.path.is_relative_to(Path(__file__).parent)
        if is_own and item.get_closest_marker("sample") is None:
            item.add_marker(pytest.mark.sample(_SAMPLE))


@pytest.fixture
def program(apiserver: ApiServer, tmp_path: Path) -> Program:
    apiserver.world.put(worker(10), worker(2, slots="4"), worker(0))
    return Program(apiserver, tmp_path)


@pytest.fixture(scope="session", autouse=True)
def scenes(
    request: pytest.FixtureRequest, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scenes]:
    """Every scene of the tests that were selected."""
    found = Scenes(selected(request.session, Scene), authority, tmp_path_factory.mktemp("scenes"))
    yield found
    found.stop()


@pytest.fixture
def ended(request: pytest.FixtureRequest, scenes: Scenes) -> Ended:
    """What came of the scene in the test's parameter."""
    scene: Scene = request.param
    return scenes.ended(scene)
