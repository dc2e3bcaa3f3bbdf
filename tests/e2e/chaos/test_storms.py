"""
Commands that start while every connection is reset within two seconds: each starts once, and its end is its own.

`make chaos` has 500 of them in each storm, `make test` a few.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

import pytest

from testbed.ground import Namespace
from tests.e2e.chaos import storms
from tests.e2e.rsh.proxy import Storm, listening
from tests.e2e.rsh.starts import kubeconfig_by_way_of, server_address
from tests.promises import promise
from tests.support import switchboards

COMMANDS = 500 if "MPIRT_TEST_CHAOS" in os.environ else 40
SEED = os.environ.get("MPIRT_TEST_SEED", "mpirt")
_LASTS = 15.0
_KILLED_EVERY = 5.0
# How long each connection lives.
_LIVES = (0.3, 2.0)

pytestmark = pytest.mark.alone


@promise("No command is started twice, wherever its connection breaks.", of="mpirt-rsh")
@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(0, id="connections", marks=pytest.mark.full("the other storm has these connections, too")),
        pytest.param(3, id="connections and switchboards"),
    ],
)
def test_each_command_is_started_once_and_ends_by_itself(namespace: Namespace, board: Path, kills: int) -> None:
    pods = namespace.workers(4, "busybox")
    random = Random(SEED)
    storm = Storm(server_address(namespace), lambda: random.uniform(*_LIVES))
    with listening(storm) as port:
        storm.lasts = True
        commands = storms.run_all(namespace, pods, kubeconfig_by_way_of(namespace, port), COMMANDS)
        # The schedule's own times; nothing tells of them.
        for _ in range(kills):
            time.sleep(_KILLED_EVERY)
            os.kill(switchboards.pid_of(board), signal.SIGKILL)
        time.sleep(_LASTS - kills * _KILLED_EVERY)
        storm.lasts = False
        ends = storms.ends_of(namespace, pods, commands)

    print(f"{COMMANDS} commands, {storm.resets} connections reset, {kills} switchboards killed")
    wrong = [f"command {end.number}: {problem}\n{end.errors}" for end in ends for problem in end.problems()]
    assert wrong == []
    assert storm.resets > COMMANDS / 2
