"""The API server stands still for half a minute, and goes on: see outages.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api import outages
from tests.api.outages import FROZEN, Outage, survived
from tests.promises import promise

pytestmark = pytest.mark.full(
    "the same as test_outages; a frozen API server is one of those in e2e/rsh/test_outages"
)


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    with survived(FROZEN, tmp_path_factory.mktemp("freezes")) as seen:
        yield seen


@promise(
    "An outage of the API server changes no job's end, and nothing is created or run twice.", of="mpirt-controller"
)
class TestAJobThatTheOutageMet(outages.Jobs):
    pass


@promise("A leader that can't renew its lease stops, ends with 244 and is restarted.", of="mpirt-controller")
class TestTheController(outages.Controllers):
    pass
