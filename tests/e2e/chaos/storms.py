"""
The commands that start in a storm: each leaves a line in its pod when it starts.

Owns: starting them, and what became of them.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from testbed.ground import Namespace
from tests.e2e.rsh import agent

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
