"""The benchmark prints its figures for programs too: one JSON object, on the last line."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from testbed.ground import Ground
from testbed.kube.paths import PROJECT


@pytest.fixture(autouse=True)
def form() -> None:
    """It chooses the form itself."""


def test_the_last_line_holds_all_ratios_to_kubectl(own_cluster: Ground) -> None:
    few = ["--sizes", "1,3", "--rounds", "1", "--runs", "2", "--mebibytes", "16", "--alone", ""]
    argv = [sys.executable, "-m", "benchmarks", "fleet", *few, "--json"]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=280, cwd=PROJECT)

    figures = json.loads(done.stdout.splitlines()[-1])
    in_the_table = [float(each) for each in re.findall(r" (\d+\.\d{3})  (?:<=|-)", done.stdout)]

    of_sizes = {f"{kind}_ratio_{size}" for kind in ("launch", "memory", "cpu") for size in (1, 3)}
    of_programs = {
        *("oneshot_wall_ratio", "oneshot_cpu_ratio", "first_wall_ratio", "stdout_ratio", "stdin_ratio"),
        *("discover_wall_ratio", "discover_cpu_ratio", "discover_alone_wall_ratio", "discover_alone_cpu_ratio"),
    }
    assert set(figures) == of_sizes | of_programs
    assert sorted(figures.values()) == pytest.approx(sorted(in_the_table), abs=0.01)
