"""A server with a worker, agents, and the cases that run ahead of their tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.certificates import Authority
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.ahead import selected
from tests.protocol.rsh.agent import Ground
from tests.protocol.rsh.cases import Case, Cases
from tests.protocol.rsh.crowds import JOB, Begin, Crowd


@pytest.fixture
def ground(apiserver: ApiServer, tmp_path: Path) -> Iterator[Ground]:
    """The worker w-0, and agents to run in it."""
    apiserver.world.put(pod("w-0"))
    found = Ground(apiserver, tmp_path)
    yield found
    found.clear()


@pytest.fixture(scope="session", autouse=True)
def cases(
    request: pytest.FixtureRequest, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cases]:
    """Everything that is a Case in the parameters of the tests that were selected."""
    found = Cases(selected(request.session, Case), authority, tmp_path_factory.mktemp("cases"))
    yield found
    found.stop()


@pytest.fixture
def begin(apiserver: ApiServer) -> Iterator[Begin]:
    """Makes crowds, and closes them at the end. There are the pods w-0 to w-3 of job a, and x without labels."""
    apiserver.world.put(*(pod(f"w-{number}", labels=JOB) for number in range(4)), pod("x"))
    with contextlib.ExitStack() as stack:

        def make(*names: str, selector: str | None = None) -> Crowd:
            crowd = Crowd(apiserver, selector)
            stack.callback(crowd.close)
            crowd.follow(*names)
            return crowd

        yield make
