"""A launcher with workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.ps.launchers import Launcher

JOB = {"mpirt.dev/job": "train"}


@pytest.fixture
def launcher(apiserver: ApiServer, tmp_path: Path) -> Iterator[Launcher]:
    """The pods w-0 to w-11 of the job train, and a launcher without commands."""
    apiserver.world.put(*(pod(f"w-{number}", labels=JOB) for number in range(12)))
    found = Launcher(apiserver, tmp_path)
    yield found
    found.stop()
