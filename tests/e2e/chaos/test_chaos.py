"""
Whatever happens to commands at random: never a false 0, never a byte twice or lost, never a command run twice.

And every real death has its name. A round that fails says its seed: `make chaos SEED=...` plays it again.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from testbed import ground
from testbed.ground import Faults, Ground
from testbed.kube.status import table
from tests.e2e.chaos import judging, rounds, schedules
from tests.e2e.chaos.judging import End
from tests.promises import promise
from tests.support import sizes

SCHEDULES = int(os.environ.get("MPIRT_TEST_CHAOS", sizes.of(merge=10, full=20)))
SEED = os.environ.get("MPIRT_TEST_SEED", "mpirt")

# A round takes half a minute.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(1200 + 20 * SCHEDULES)]


@promise(
    "Whatever happens around a command, it never ends with a false 0, nor loses or repeats a byte.", of="mpirt-rsh"
)
def test_commands_keep_their_promises_in_any_weather(cluster: Ground, fault: Faults, tmp_path: Path) -> None:
    found: list[tuple[str, End]] = []
    with ground.passing_namespace(cluster, tmp_path) as namespace:
        pods = rounds.start_pods(namespace)
        for number in range(-(-SCHEDULES // schedules.COMMANDS)):
            what = schedules.of(f"{SEED}-{number}")
            weather = ", ".join(f"{each.weather.value} {each.lasts:.0f} s" for each in what.outages) or "fine"
            ends = rounds.play(namespace, pods, what, fault)
            print(f"{what.seed}: {weather}: {dict(Counter(end.code for end in ends))}")
            found += [(what.seed, end) for end in ends]

    print("\n".join(table(judging.summary(end for _, end in found))))
    wrong = [
        f"{seed}, command {end.plan.number} ({end.plan}): {problem}\n{end.errors}"
        for seed, end in found
        for problem in judging.problems(end)
    ]
    assert not wrong, "\n".join(wrong)
