"""
What happens in a round, as values made from a seed: the same seed makes the same round.

A round has outages that are everybody's, and for each command what it does, what is done to its first connection,
and what it dies of.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random

from tests.e2e.rsh.proxy import Break, Harm, Way

COMMANDS = 10
"""At once, each in a pod of its own."""

NODES = ("node-1", "node-2")

_HARMED, _DEAD, _FAILS, _READS = 0.3, 0.4, 0.3, 0.5
# An agent's first records carry the greeting; the last of these are in the midst of the output.
_RECORDS = 60


class Weather(Enum):
    """What is away for everybody."""

    KILLED = "API server killed"
    FROZEN = "API server frozen"
    DROPPED = "packets dropped"
    RESET = "connections reset"
    KUBELET = "kubelet restarted"
    CONTAINERD = "containerd restarted"


class Death(Enum):
    """What ends a command before its own end."""

    MAIN_PROCESS = "container's main process killed"
    FORCE_DELETE = "pod deleted by force"
    DELETE = "pod deleted"
    COMMAND = "command killed"
    AGENT = "agent told to end"


@dataclass(frozen=True, slots=True)
class Outage:
    """Weather for a while, on one node where it is a node's."""

    weather: Weather
    begins: float
    """Seconds from the beginning of the round, or from the end of the outage before it if that is later."""
    lasts: float
    node: str


@dataclass(frozen=True, slots=True)
class Plan:
    """One command, and what is in store for it."""

    number: int
    begins: float
    lines: int
    pause: float
    padding: int
    stdin: int
    code: int
    broken: Break | None
    death: Death | None
    dies: float
    """Seconds from its first line."""

    def __str__(self) -> str:
        what = [f"{self.lines} lines, code {self.code}"]
        what += [f"connection {self.broken}"] if self.broken else []
        what += [f"{self.death.value} after {self.dies:.1f} s"] if self.death else []
        return ", ".join(what)


@dataclass(frozen=True, slots=True)
class Round:
    """Everything that happens at once."""

    seed: str
    outages: tuple[Outage, ...]
    plans: tuple[Plan, ...]


def of(seed: str) -> Round:
    """The round of a seed."""
    random = Random(seed)
    outages = tuple(_outage(random) for _ in range(random.choice((1, 1, 2))))
    return Round(seed, outages, tuple(_plan(random, number) for number in range(COMMANDS)))


def _outage(random: Random) -> Outage:
    weather = random.choice(list(Weather))
    return Outage(weather, random.uniform(0.5, 8), random.uniform(0.5, 15), random.choice(NODES))


def _plan(random: Random, number: int) -> Plan:
    death = random.choice(list(Death)) if random.random() < _DEAD else None
    lasts = random.uniform(2, 15)
    pause = random.choice((0.02, 0.1, 0.5))
    return Plan(
        number,
        begins=random.uniform(0, 4),
        lines=max(1, int(lasts / pause)),
        pause=pause,
        padding=random.choice((0, 0, 100, 4000)),
        stdin=random.choice((1, 1000, 300_000)) if random.random() < _READS else 0,
        code=random.choice((1, 3, 77)) if random.random() < _FAILS else 0,
        broken=_break(random) if random.random() < _HARMED else None,
        death=death,
        dies=random.uniform(0, lasts),
    )


def _break(random: Random) -> Break:
    return Break(
        random.choice(list(Way)),
        random.randrange(_RECORDS),
        random.choice(list(Harm)),
        in_middle=random.random() < 0.5,
    )
