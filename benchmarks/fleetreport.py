"""
What thousands of sessions have cost, for people, for programs and as a picture.

Owns: the words, the ratios and the curves. Measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.fleet import OURS, THEIRS, Alone, Beside, Held
from benchmarks.plot import Curve, Panel, svg
from testbed.kube.status import table

_MB, _MS = 1e6, 1e-3
_ALONE = f"{OURS}, loopback server"
_LEGEND = f"""\
Medians. CPU is that of all processes of a side until its last command is up, the switchboard's own start included;
memory is their proportional set size. A ratio is the median of each round's: below 1, {OURS} takes less. Rows with
the loopback server have nothing beside them; its own CPU time is told because both share this machine."""

_Figure = Callable[[Held], float]
_KINDS: Mapping[str, tuple[str, _Figure]] = {
    "launch": ("until the last is up, s", lambda held: held.up_seconds),
    "memory": ("memory of all, MB", lambda held: held.bytes / _MB),
    "cpu": ("CPU until all are up, s", lambda held: held.cpu_seconds),
}


@dataclass(frozen=True, slots=True)
class Results:
    """All that was measured; of what there can't be alone, the reason."""

    beside: Beside | None
    alone: Mapping[int, Alone | str]

    @property
    def measured_alone(self) -> dict[int, Alone]:
        return {count: each for count, each in self.alone.items() if isinstance(each, Alone)}

    def rendered(self) -> str:
        """One table."""
        heading = ["SESSIONS", "MEASURED", OURS.upper(), THEIRS.upper(), "RATIO"]
        rows = [*(self._beside_rows(self.beside) if self.beside else ()), *self._alone_rows()]
        refused = [f"not measured: {why}" for why in self.alone.values() if isinstance(why, str)]
        errors = [f"{count}: {line}" for count, each in self.measured_alone.items() for line in each.errors]
        return "\n".join([*table([heading, *rows]), "", *refused, *errors[:_MOST_ERRORS], _LEGEND])

    def figures(self) -> dict[str, float]:
        """By key."""
        found: dict[str, float] = {}
        if self.beside is not None:
            for count, (ours, theirs) in self.beside.held.items():
                for kind, (_, figure) in _KINDS.items():
                    found[f"{kind}_ratio_{count}"] = _ratio(map(figure, ours), map(figure, theirs))
            first, second = self.beside.short
            found["oneshot_wall_ratio"] = _ratio(
                *([each.wall_seconds for each in side] for side in (first, second))
            )
            found["oneshot_cpu_ratio"] = _ratio(*([each.cpu_seconds for each in side] for side in (first, second)))
        for count, each in self.measured_alone.items():
            found[f"up_{count}_s"] = each.held.up_seconds
            found[f"memory_{count}_mb"] = each.held.bytes / _MB
            found[f"cpu_{count}_s"] = each.held.cpu_seconds
            found[f"idle_{count}_percent"] = each.idle_percent
            found[f"watches_{count}"] = each.watches
            found[f"errors_{count}"] = len(each.errors)
        return found

    def plot(self) -> str:
        """Memory and launch time over the number of sessions, as an SVG."""
        return svg([self._panel("memory"), self._panel("launch")], across="sessions held at once")

    def _panel(self, kind: str) -> Panel:
        title, figure = _KINDS[kind]
        held = self.beside.held if self.beside else {}
        curves = [
            Curve(
                f"{name}, test cluster",
                [(count, median(map(figure, sides[side]))) for count, sides in held.items()],
            )
            for side, name in enumerate((OURS, THEIRS))
        ]
        alone = [(count, figure(each.held)) for count, each in self.measured_alone.items()]
        return Panel(title, [curve for curve in (*curves, Curve(_ALONE, alone)) if curve.points])

    @staticmethod
    def _beside_rows(beside: Beside) -> Iterator[list[str]]:
        for count, (ours, theirs) in beside.held.items():
            for what, figure in _KINDS.values():
                yield _row(str(count), what, [figure(each) for each in ours], [figure(each) for each in theirs])
        first, second = (
            [(each.wall_seconds / _MS, each.cpu_seconds / _MS) for each in side] for side in beside.short
        )
        for place, what in enumerate(("`true`: wall time, ms", "`true`: CPU time, ms")):
            yield _row("1", what, [each[place] for each in first], [each[place] for each in second])

    def _alone_rows(self) -> Iterator[list[str]]:
        for count, each in self.measured_alone.items():
            held = [(what, figure(each.held)) for what, figure in _KINDS.values()]
            more = [
                ("CPU of the server meanwhile, s", each.server_cpu_seconds),
                ("CPU when idle, %", each.idle_percent),
            ]
            for what, value in (*held, *more):
                yield [str(count), f"loopback: {what}", f"{value:.2f}", "-", "-"]
            for what, number in (("watches", each.watches), ("errors", len(each.errors))):
                yield [str(count), f"loopback: {what}", str(number), "-", "-"]


_MOST_ERRORS = 10


def _row(count: str, what: str, ours: Sequence[float], theirs: Sequence[float]) -> list[str]:
    return [count, what, f"{median(ours):.2f}", f"{median(theirs):.2f}", f"{_ratio(ours, theirs):.3f}"]


def _ratio(ours: Iterator[float] | Sequence[float], theirs: Iterator[float] | Sequence[float]) -> float:
    return median(first / second for first, second in zip(ours, theirs, strict=True))
