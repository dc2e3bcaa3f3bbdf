"""What is compared of mpirt-discover and kubectl get, and how both are started."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import discover


def test_ours_is_the_one_beside_the_interpreter() -> None:
    assert discover.discover_argv("app=worker") == [
        str(Path(sys.executable).with_name("mpirt-discover")),
        "--selector",
        "app=worker",
    ]


def test_theirs_prints_the_names_of_the_same_pods() -> None:
    assert discover.kubectl_argv(Path("/opt/kubectl"), "app=worker") == [
        "/opt/kubectl", "get", "pods", "--selector", "app=worker",
        "--output", 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}',
    ]  # fmt: skip


def test_the_ratios_have_their_keys_and_bounds() -> None:
    quantities = (discover.WALL, discover.CPU, discover.PEAK, discover.GROWTH)

    assert {each.key: each.bound for each in quantities} == {
        "wall_ratio": 0.75,
        "cpu_ratio": 0.60,
        "memory_ratio": 0.42,
        "growth_200_over_3": 1.5,
    }
