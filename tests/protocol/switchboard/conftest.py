"""A yard for each test; nothing that it starts outlives it, and no switchboard has anything to complain of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.server import ApiServer
from tests.protocol.switchboard.yard import Yard


@pytest.fixture
def yard(apiserver: ApiServer, tmp_path: Path) -> Iterator[Yard]:
    """A place where no switchboard runs yet."""
    found = Yard(apiserver, tmp_path)
    yield found
    found.close()
    assert [text for text in found.complaints if text] == []
