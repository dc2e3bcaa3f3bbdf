"""The benchmark prints its ratios for programs too: one JSON object, on the last line."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.e2e.ground import Ground
from tests.unit.layers import PROJECT


def test_the_last_line_holds_the_four_ratios(own_cluster: Ground) -> None:
    argv = [sys.executable, "-m", "benchmarks", "rsh", "--runs", "2", "--held", "2", "--json"]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=280, cwd=PROJECT)

    ratios = json.loads(done.stdout.splitlines()[-1])

    assert set(ratios) == {"wall_ratio", "cpu_ratio", "memory_ratio", "held_memory_ratio"}
    assert all(0 < ratio < 10 for ratio in ratios.values())
