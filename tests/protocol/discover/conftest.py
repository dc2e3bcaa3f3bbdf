"""A server with three workers, and the program beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apiserver.server import ApiServer
from tests.protocol.discover.program import Program, worker


@pytest.fixture
def program(apiserver: ApiServer, tmp_path: Path) -> Program:
    apiserver.world.put(worker(10), worker(2, slots="4"), worker(0))
    return Program(apiserver, tmp_path)
