"""The tests of mpirt-rsh run in both of its forms, for agents of the test itself and for those in launcher pods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forms import Form, chosen, place


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the switchboard of all agents that this process starts."""
    yield from place(tmp_path_factory.mktemp("board"))


@pytest.fixture(autouse=True, params=list(Form), ids=str, scope="session")
def form(request: pytest.FixtureRequest, board: Path) -> Iterator[Form]:
    """How commands are run: each by itself, or all by a switchboard."""
    with chosen(request.param, board) as found:
        yield found
