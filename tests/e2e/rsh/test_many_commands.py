"""
Nothing is left in a worker of many commands: no process, no zombie, no file, no socket.

A command's keeper is a child of its bridge, and the bridge one of the runtime; so it makes no difference whether
the container's main process reaps what is orphaned.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from testbed.ground import Namespace
from tests.e2e.rsh import agent, jobworkers
from tests.e2e.rsh.remains import REAPS, same_as, seen
from tests.promises import promise
from tests.support import sizes

# They use all processors.
pytestmark = pytest.mark.alone

_COMMANDS = sizes.of(merge=200, full=1000)
_AT_ONCE = 12
_CODES = 7

DOES_NOT_REAP = ["sleep", "1000000"]


@promise("A command that has ended leaves no process, file or socket in its pod.", of="mpirt-rsh")
@pytest.mark.sample(1)
@pytest.mark.parametrize("main", [REAPS, DOES_NOT_REAP], ids=["reaping", "not reaping"])
def test_nothing_is_left_of_many_commands(namespace: Namespace, main: list[str]) -> None:
    pod = worker(namespace, main)
    before = seen(namespace, pod)

    outcomes = commands(namespace, pod)

    assert [each for each in outcomes if each.is_wrong] == []
    same_as(before, namespace, pod)


def test_a_command_that_runs_is_seen(namespace: Namespace) -> None:
    """Else nothing would be left, whatever is."""
    pod = worker(namespace, REAPS)
    before = seen(namespace, pod)

    with agent.rsh(namespace, pod, "echo up; exec sleep 600") as running:
        assert running.line() == "up"
        during = seen(namespace, pod)

    kinds = Counter(line.split()[0] for line in (during - before).elements())
    assert kinds == {"process": 3, "file": 1, "socket": 1}


@dataclass(frozen=True)
class Outcome:
    """How one command's agent ended."""

    number: int
    code: int
    output: str
    errors: str

    @property
    def is_wrong(self) -> bool:
        is_held = "keeper-1-" in self.output
        expected = (self.number % _CODES, str(self.number), "")
        return (self.code, self.output.partition(" ")[0], self.errors) != expected or not is_held


def worker(namespace: Namespace, main: list[str]) -> str:
    """A job's worker with this main process, and a $TMPDIR."""
    container = {
        "command": main,
        "env": [{"name": "TMPDIR", "value": "/scratch"}],
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    volumes = [{"name": "scratch", "emptyDir": {}}]
    [pod] = jobworkers.start(namespace, 1, "busybox", container=container, volumes=volumes)
    return pod


def commands(namespace: Namespace, pod: str) -> list[Outcome]:
    """All of them, some at a time; each says its number and who started it."""
    env = agent.environment(namespace)

    def run(number: int) -> Outcome:
        command = f"echo {number} $(tr '\\0' ' ' </proc/$PPID/cmdline); exit {number % _CODES}"
        done = subprocess.run(
            [str(agent.RSH), pod, command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=env,
            timeout=120,
            check=False,
        )
        return Outcome(number, done.returncode, done.stdout.decode(), done.stderr.decode())

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(run, range(_COMMANDS)))
