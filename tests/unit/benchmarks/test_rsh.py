"""What is compared of mpirt-rsh and kubectl exec, and how both are started."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import costs, report, rsh
from benchmarks.measure import Cost


def test_ours_is_the_one_beside_the_interpreter() -> None:
    assert rsh.rsh_argv("worker-0", "true") == [
        str(Path(sys.executable).with_name("mpirt-rsh")),
        "worker-0",
        "true",
    ]


def test_theirs_is_what_kubexec_sh_runs() -> None:
    assert rsh.kubectl_argv(Path("/opt/kubectl"), "worker-0", "true") == [
        "/opt/kubectl", "exec", "worker-0", "--", "/bin/sh", "-c", "true",
    ]  # fmt: skip


def test_the_costs_of_runs_become_milliseconds_and_megabytes_with_the_issues_bounds() -> None:
    ours = [Cost(0.2, 0.06, 17_000_000)]
    theirs = [Cost(0.25, 0.1, 50_000_000)]

    wall, cpu, peak = costs.compared(ours, theirs, (rsh.WALL, rsh.CPU, rsh.PEAK))

    assert (wall.ours, wall.theirs, wall.quantity.bound) == ([200], [250], 0.85)
    assert (cpu.ours, cpu.theirs, cpu.quantity.bound) == ([60], [100], 0.75)
    assert (peak.ours, peak.theirs, peak.quantity.bound) == ([17], [50], 0.42)
    assert report.ratios([wall, cpu, peak]) == {"wall_ratio": 0.8, "cpu_ratio": 0.6, "memory_ratio": 0.34}


def test_held_memory_has_its_key_and_bound() -> None:
    assert (rsh.HELD.key, rsh.HELD.bound) == ("held_memory_ratio", 0.60)
