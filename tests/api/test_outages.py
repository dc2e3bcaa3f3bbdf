"""The API server is killed, and started again half a minute later: see outages.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api import outages
from tests.api.outages import KILLED, Outage, survived
from tests.promises import promise


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    with survived(KILLED, tmp_path_factory.mktemp("outages")) as seen:
        yield seen


@promise(
    "An outage of the API server changes no job's end, and nothing is created or run twice.", of="mpirt-controller"
)
class TestAJobThatTheOutageMet(outages.Jobs):
    pass


@promise("A leader that can't renew its lease stops, ends with 244 and is restarted.", of="mpirt-controller")
class TestTheController(outages.Controllers):
    pass
