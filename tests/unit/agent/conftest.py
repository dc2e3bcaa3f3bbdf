"""The agent, compiled once for all tests, and a ground for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from images import build
from tests.unit.agent.board import Ground, make_ground

ARCHITECTURE = build.architecture()


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent for this machine."""
    return build.build("agent", tmp_path_factory.mktemp("agent"), ARCHITECTURE)


@pytest.fixture(scope="session")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that waits for WELCOME for half a second only, and that gives daemons no more time."""
    folder = tmp_path_factory.mktemp("impatient")
    return build.build("agent", folder, ARCHITECTURE, "-DWELCOME_PATIENCE=500", "-DDAEMON_GRACE=500")


@pytest.fixture(scope="session")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that waits no longer for a switchboard that works."""
    folder = tmp_path_factory.mktemp("limited")
    return build.build("agent", folder, ARCHITECTURE, "-DWELCOME_PATIENCE=500", "-DWELCOME_LIMIT=1000")


@pytest.fixture(scope="session")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that gives daemons far more time than a test takes."""
    return build.build("agent", tmp_path_factory.mktemp("patient"), ARCHITECTURE, "-DDAEMON_GRACE=3600000")


@pytest.fixture
def ground(tmp_path: Path, program: Path) -> Iterator[Ground]:
    """A place where nobody listens yet."""
    made = make_ground(tmp_path, program)
    yield made
    made.close()


@pytest.fixture
def board(ground: Ground) -> Ground:
    """A place where the test listens."""
    ground.listen()
    return ground
