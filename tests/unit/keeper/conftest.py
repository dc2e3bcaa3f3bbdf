"""The keeper, compiled once for all tests, and one session of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.keeper.client import Agent

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file for this machine, as it goes into a job."""
    folder = tmp_path_factory.mktemp("keeper")
    subprocess.run([sys.executable, PROJECT / "images/build.py", "keeper", folder, "amd64"], check=True)
    return folder / "keeper-1-amd64"


@pytest.fixture
def root() -> None:
    """Skip where the test can't be root: it mounts something, or is another user."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it mounts a file system or becomes another user")


@pytest.fixture
def agent(keeper: Path) -> Iterator[Agent]:
    """A session whose command isn't started yet."""
    with Agent(keeper) as agent:
        yield agent
