"""Programs that are held at once."""

from __future__ import annotations

import os
import sys

import psutil
import pytest

from benchmarks.held import held_bytes
from benchmarks.measure import Unmeasured

MEGABYTE = 2**20
ENV = {"PATH": os.environ["PATH"]}

# Holds that much memory of its own, says so, and stays.
STAYS = "import time; held = b'x' * (16 * 2**20); print('up', flush=True); time.sleep(600)"


def test_each_ones_memory_is_looked_at_and_none_is_left() -> None:
    found = held_bytes([sys.executable, "-I", "-c", STAYS], 3, env=ENV, sign="up", settled_after=0)

    assert len(found) == 3
    assert all(16 * MEGABYTE < each < 48 * MEGABYTE for each in found)
    assert [child for child in psutil.Process().children() if child.name().startswith("python")] == []


def test_one_that_does_not_stay_spoils_the_measurement() -> None:
    with pytest.raises(Unmeasured, match=r"^sh ended instead of staying: no room$"):
        held_bytes(["/bin/sh", "-c", "echo no room; exit 3"], 2, env=ENV, sign="up", settled_after=0)
