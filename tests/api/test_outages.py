"""The API server is killed, and started again half a minute later: see outages.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api import outages
from tests.api.outages import KILLED, Outage, survived


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    with survived(KILLED, tmp_path_factory.mktemp("outages")) as seen:
        yield seen


class TestAJobThatTheOutageMet(outages.Jobs):
    pass


class TestTheController(outages.Controllers):
    pass
