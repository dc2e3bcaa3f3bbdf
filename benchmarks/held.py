"""
Many sessions at once into one worker, held by one side or the other.

Owns: what such a crowd comes to, and the rows of two of them. Must not know who is beside mpirt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.agents import agent, switchboard_folder
from benchmarks.frame import Row, in_turn
from benchmarks.programs import cpu_seconds, crowd, pss_bytes
from testbed.kube.progress import step
from tests.support.switchboards import SWITCHBOARD, pid_of

UP = "up"
HOLD = f"echo {UP}; exec sleep 600"
_SETTLED_AFTER = 5.0


@dataclass(frozen=True, slots=True)
class Held:
    """So many sessions, held at once by one side."""

    up_seconds: float
    cpu_seconds: float
    megabytes: float
    messages: Sequence[str] = ()


def beside(pod: str, theirs: Sequence[str], env: Mapping[str, str], count: int, rounds: int) -> list[Row]:
    """So many of our agents, with a switchboard that has not been started yet, and of another program."""

    def ours() -> Held:
        with switchboard_folder() as board:
            return by_agents([agent(pod, HOLD)] * count, env, board, lambda _: time.sleep(_SETTLED_AFTER))

    with step(f"{rounds} times {count} held sessions of each"):
        pair = in_turn(rounds, ours, lambda: _by_programs([theirs] * count, env), warm_up=True)
    launch = ([each.up_seconds for each in side] for side in pair)
    memory = ([each.megabytes for each in side] for side in pair)
    cpu = ([each.cpu_seconds for each in side] for side in pair)
    return [
        Row(f"launch_ratio_{count}", f"{count}: until the last is up, s", *launch),
        Row(f"memory_ratio_{count}", f"{count}: memory of all, MB", *memory),
        Row(f"cpu_ratio_{count}", f"{count}: CPU until all are up, s", *cpu),
    ]


def by_agents(
    argvs: Sequence[Sequence[str]], env: Mapping[str, str], board: Path, settled: Callable[[int], None]
) -> Held:
    """The agents and the switchboard that the first of them starts, until all are up and settled."""
    with crowd(argvs, env={**env, SWITCHBOARD: str(board)}, sign=UP) as held:
        pid = pid_of(board)
        cpu = held.cpu_seconds + cpu_seconds(pid)
        settled(pid)
        return Held(held.up_seconds, cpu, (held.pss_bytes() + pss_bytes(pid)) / 1e6, held.messages())


def _by_programs(argvs: Sequence[Sequence[str]], env: Mapping[str, str]) -> Held:
    with crowd(argvs, env=env, sign=UP) as held:
        time.sleep(_SETTLED_AFTER)
        return Held(held.up_seconds, held.cpu_seconds, held.pss_bytes() / 1e6)
