"""
Commands that start while every connection is reset within two seconds: each starts once, and its end is its own.

`make chaos` has 500 of them in each storm, `make test` a few.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from testbed.ground import Namespace
from tests.e2e.rsh import agent
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
        commands = run_all(namespace, pods, kubeconfig_by_way_of(namespace, port), COMMANDS)
        # The schedule's own times; nothing tells of them.
        for _ in range(kills):
            time.sleep(_KILLED_EVERY)
            os.kill(switchboards.pid_of(board), signal.SIGKILL)
        time.sleep(_LASTS - kills * _KILLED_EVERY)
        storm.lasts = False
        ends = ends_of(namespace, pods, commands)

    print(f"{COMMANDS} commands, {storm.resets} connections reset, {kills} switchboards killed")
    wrong = [f"command {end.number}: {problem}\n{end.errors}" for end in ends for problem in end.problems()]
    assert wrong == []
    assert storm.resets > COMMANDS / 2


_STARTS = "/tmp/starts"
# Far beyond what a command takes on a loaded machine.
_ENDS_WITHIN = 400.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended that is to leave one line and to end with its own code."""

    number: int
    code: int | None
    output: str
    errors: str
    starts: int

    def problems(self) -> Iterator[str]:
        """What is wrong with it, in words."""
        if self.starts > 1:
            yield f"started {self.starts} times"
        if (self.code, self.output, self.starts) != (self.number % 3, f"{self.number}\n", 1):
            yield f"code {self.code} after {self.starts} starts, output {self.output!r}"


def run_all(namespace: Namespace, pods: Sequence[str], config: Path, count: int) -> list[subprocess.Popen[str]]:
    """Start so many commands, one after the other and each in the next pod."""
    for pod in pods:
        namespace.kubectl.execute(pod, "mkdir", "-p", _STARTS)
    environment = {**os.environ, "KUBECONFIG": str(config)}
    return [
        subprocess.Popen(
            [
                *(agent.RSH, "-n", "-o", f"ConnectTimeout={_ENDS_WITHIN:.0f}", pods[number % len(pods)]),
                f"echo $$ >>{_STARTS}/{number}; sleep {1 + number % 7}; echo {number}; exit {number % 3}",
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]


def ends_of(namespace: Namespace, pods: Sequence[str], commands: Sequence[subprocess.Popen[str]]) -> list[Ended]:
    """Wait for all of them, and look how often each was started."""

    def end(command: subprocess.Popen[str]) -> tuple[int | None, str, str]:
        try:
            output, errors = command.communicate(timeout=_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            command.kill()
            return None, *command.communicate()
        return command.returncode, output, errors

    with ThreadPoolExecutor(len(commands)) as pool:
        ends = list(pool.map(end, commands))
    starts = Counter[int]()
    for pod in pods:
        lines = namespace.kubectl.execute(pod, "grep", "-c", "", "-r", _STARTS).splitlines()
        starts.update({int(Path(path).name): int(count) for path, count in (line.split(":") for line in lines)})
    return [Ended(number, *found, starts[number]) for number, found in enumerate(ends)]
