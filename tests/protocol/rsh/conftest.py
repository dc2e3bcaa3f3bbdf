"""A server with a worker, agents, and the cases that run ahead of their tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.certificates import Authority
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.ahead import selected_pairs
from tests.protocol.rsh.agent import Ground
from tests.protocol.rsh.cases import CameOf, Case, Cases
from tests.support.forms import Form, chosen, place


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a switchboard that all tests share, as the commands of a launcher do."""
    yield from place(tmp_path_factory.mktemp("board"))


# Of the commands that are run each by itself, one in so many is in the merge tier: their twins all are.
_TWINS = 4
# Each case starts an agent, most of them a Python. So many of a function are in the merge tier, in either form;
# of the cases of a table, so many of each code. The full tier, a slice of which CI runs each time, has all.
_SAMPLE, _SAMPLE_OF_CODE = 3, 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in (item for item in items if item.path.is_relative_to(Path(__file__).parent)):
        if _form(item) is Form.DIRECT:
            item.add_marker(pytest.mark.one_in(_TWINS))
        if item.get_closest_marker("sample") is None:
            item.add_marker(_sample(item))


def _sample(item: pytest.Item) -> pytest.MarkDecorator:
    spec = getattr(item, "callspec", None)
    values = () if spec is None else spec.params.values()
    code = next((value.code for value in values if isinstance(value, Case)), None)
    return pytest.mark.sample(_SAMPLE) if code is None else pytest.mark.sample(_SAMPLE_OF_CODE, of=f"code {code}")


def _form(item: pytest.Item) -> Form | None:
    spec = getattr(item, "callspec", None)
    found: Form | None = None if spec is None else spec.params.get("form")
    return found


@pytest.fixture(autouse=True, params=list(Form), ids=str, scope="session")
def form(request: pytest.FixtureRequest, board: Path) -> Iterator[Form]:
    """How commands are run: each by itself, or all by a switchboard."""
    with chosen(request.param, board) as found:
        yield found


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
    """Everything that is a Case in the parameters of the tests that were selected, in its form."""
    pairs = selected_pairs(request.session, Case, Form)
    found = Cases(pairs, authority, tmp_path_factory.mktemp("cases"), board)
    yield found
    found.stop()


@pytest.fixture
def came_of(ahead: Cases, form: Form) -> CameOf:
    """What came of a case; waits for it."""
    return lambda case: ahead.outcome(case, form)
