"""The benchmarks print their figures for programs too: one JSON object, on the last line."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from testbed.ground import Ground
from testbed.kube.paths import PROJECT


def test_the_last_line_holds_all_figures(own_cluster: Ground) -> None:
    few = ["--runs", "2", "--held", "2", "--streams", "1", "--bytes", str(16 << 20)]
    argv = [sys.executable, "-m", "benchmarks", "rsh", *few, "--json"]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=280, cwd=PROJECT)

    figures = json.loads(done.stdout.splitlines()[-1])
    in_the_table = [float(figure) for figure in re.findall(r"(\S+)\*", done.stdout)]

    assert set(figures) == {
        "wall_ratio",
        "cpu_ratio",
        "memory_ratio",
        "start_ratio",
        "held_memory_ratio",
        "more_processes",
        "stdout_ratio",
        "stdin_ratio",
    }
    assert sorted(figures.values()) == pytest.approx(sorted(in_the_table), abs=0.01)
    assert figures["more_processes"] == 2


def test_so_does_the_one_of_many_sessions(own_cluster: Ground) -> None:
    few = ["--sizes", "1,3", "--rounds", "1", "--runs", "2", "--alone", ""]
    argv = [sys.executable, "-m", "benchmarks", "fleet", *few, "--json"]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=280, cwd=PROJECT)

    figures = json.loads(done.stdout.splitlines()[-1])
    in_the_table = [float(figure) for figure in re.findall(r"^\d+ .* (\d+\.\d{3})$", done.stdout, re.MULTILINE)]

    of_sizes = {f"{kind}_ratio_{size}" for kind in ("launch", "memory", "cpu") for size in (1, 3)}
    assert set(figures) == {*of_sizes, "oneshot_wall_ratio", "oneshot_cpu_ratio"}
    assert sorted(figures.values()) == pytest.approx(sorted(in_the_table), abs=0.01)
