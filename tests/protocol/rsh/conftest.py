"""A server with a worker, agents, and the cases that run ahead of their tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.certificates import Authority
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.ahead import selected
from tests.protocol.rsh.agent import Ground
from tests.protocol.rsh.cases import CameOf, Case, Cases
from tests.support.switchboards import place, used


@pytest.fixture(scope="session", autouse=True)
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a switchboard that all tests share, as the commands of a launcher do."""
    for folder in place(tmp_path_factory.mktemp("board")):
        with used(folder):
            yield folder


# Each case starts an agent. So many of a function are in the merge tier; of the cases of a table, so many of each
# code. The full tier, a slice of which CI runs each time, has all.
_SAMPLE, _SAMPLE_OF_CODE = 3, 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in (item for item in items if item.path.is_relative_to(Path(__file__).parent)):
        if item.get_closest_marker("sample") is None:
            item.add_marker(_sample(item))


def _sample(item: pytest.Item) -> pytest.MarkDecorator:
    spec = getattr(item, "callspec", None)
    values = () if spec is None else spec.params.values()
    code = next((value.code for value in values if isinstance(value, Case)), None)
    return pytest.mark.sample(_SAMPLE) if code is None else pytest.mark.sample(_SAMPLE_OF_CODE, of=f"code {code}")


@pytest.fixture
def ground(apiserver: ApiServer, tmp_path: Path) -> Iterator[Ground]:
    """The worker w-0, and agents to run in it."""
    apiserver.world.put(pod("w-0"))
    found = Ground(apiserver, tmp_path)
    yield found
    found.clear()


@pytest.fixture(scope="session", autouse=True)
def ahead(
    request: pytest.FixtureRequest, board: Path, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cases]:
    """Everything that is a Case in the parameters of the tests that were selected."""
    found = Cases(selected(request.session, Case), authority, tmp_path_factory.mktemp("cases"), board)
    yield found
    found.stop()


@pytest.fixture
def came_of(ahead: Cases) -> CameOf:
    """What came of a case; waits for it."""
    return ahead.outcome
