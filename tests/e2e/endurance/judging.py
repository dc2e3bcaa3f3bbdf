"""
What is wrong with how commands ended, and with what a switchboard holds after each lap. No I/O.

Owns: the codes that what happens to a command may give it, and how much a process may grow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import fmean

from tests.e2e.chaos.judging import NAMES
from tests.e2e.chaos.schedules import Death
from tests.e2e.endurance.visits import Visit
from tests.support.switchboards import Figures

_KILLED = 9


class Fate(Enum):
    """What has happened to a command on purpose."""

    POD_DELETED = "its pod was deleted"
    CONTAINER_DIED = "its container died"
    AGENT_KILLED = "its agent was killed"


_CODES: dict[Fate, set[int]] = {
    Fate.POD_DELETED: NAMES[Death.FORCE_DELETE][0],
    Fate.CONTAINER_DIED: NAMES[Death.MAIN_PROCESS][0],
    Fate.AGENT_KILLED: {-_KILLED},
}


@dataclass(frozen=True, slots=True)
class End:
    """How a command ended."""

    visit: Visit
    fate: Fate | None
    code: int | None
    """None: its agent did not end."""
    output: bytes
    errors: str


def problem(end: End) -> str:
    """What is wrong with it; nothing if all is well."""
    visit, whole = end.visit, end.visit.output
    if end.code is None:
        return "its agent did not end"
    if not whole.startswith(end.output):
        return f"{len(end.output)} bytes of output that are not the command's"
    if (end.code, len(end.output)) == (visit.code, len(whole)):
        return end.errors
    if end.fate is not None and end.code in _CODES[end.fate]:
        return ""
    return f"code {end.code} after {len(end.output)} of {len(whole)} bytes; {end.errors.strip()}"


@dataclass(slots=True)
class Lap(Figures):
    """A lap, and what is there once its commands have ended."""

    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    at_once: int = 0
    """The most commands that ran at a time."""
    ends: Counter[str] = field(default_factory=Counter)
    remote: int = 0
    """Processes, files and sockets in all pods."""

    def note(self, end: End) -> None:
        """Count an end."""
        is_own = end.code == end.visit.code and not end.errors
        self.ends["its own" if is_own else f"code {end.code}"] += 1


HEADING = ["LAP", "S", "COMMANDS", "AT ONCE", "PID", "KIB", "AGENTS", "FDS", "THREADS", "REMOTE", "ENDS", "FAULTS"]


def row(number: int, lap: Lap) -> list[str]:
    """A line of the table."""
    ends = ", ".join(f"{what} {count}" for what, count in lap.ends.most_common())
    figures = [number, round(lap.seconds), lap.ends.total(), lap.at_once, lap.switchboard, lap.memory, lap.agents]
    figures += [lap.descriptors, lap.threads, lap.remote]
    return [*map(str, figures), ends, ", ".join(lap.faults)]


# The first laps fill what is kept for good. Of 10,000 commands that lie between the two averages of an hour each
# may leave some 100 bytes for that; a part of a session is more than ten times as much.
_WARM_UP, _LEAST_LAPS, _GROWTH = 0.25, 8, 1.05


def growth(laps: Sequence[Lap]) -> Iterator[str]:
    """What has become more, of the switchboard that there is at the end. A few laps tell nothing of that."""
    same = [lap for lap in laps if lap.switchboard == laps[-1].switchboard]
    if len(same) < _LEAST_LAPS:
        return
    for what in ("descriptors", "threads"):
        found = [getattr(lap, what) for lap in same]
        # A watch on one pod may be there from the last fault; what is lost for good is in every lap after it.
        if min(found[len(found) // 2 :]) > min(found[: (len(found) + 1) // 2]):
            yield f"{what}: {found}"
    settled = same[int(len(same) * _WARM_UP) :]
    half = len(settled) // 2
    for what in ("memory", "agents"):
        found = [getattr(lap, what) for lap in settled]
        if fmean(found[half:]) > fmean(found[:half]) * _GROWTH:
            yield f"{what}: {found} KiB"
