"""
What all benchmarks have in common: declaring what is compared, taking turns, and printing it.

Owns: the arithmetic, the table, the option --json. Must not know what is measured.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeVar

import click

from testbed.kube.errors import ClusterError
from testbed.kube.status import table

Result = TypeVar("Result")

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on the last line.")

_LEGEND = """\
Medians, with minimum and maximum in brackets. A ratio is the median of each pair's ratio: the two runs of a pair
are made back to back, so that both meet the same load."""


class Unmeasured(Exception):
    """What could not be measured, and why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity: samples of one side, and where two are compared, as many of the other in the same order."""

    key: str
    what: str
    """With the unit."""
    ours: Sequence[float]
    theirs: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not self.ours or (self.theirs is not None and len(self.theirs) != len(self.ours)):
            raise ValueError(f"{self.key}: {len(self.ours)} and {len(self.theirs or ())} samples are no pairs")
        if self.theirs and min(self.theirs) <= 0:
            raise Unmeasured(f"{self.key}: there is no ratio to a sample of {min(self.theirs):g}")

    @property
    def figure(self) -> float:
        """The ratio; the median where nothing is compared."""
        if self.theirs is None:
            return median(self.ours)
        return median(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))

    def cells(self, bound: float | None) -> list[str]:
        theirs, ratio = ("-", "-") if self.theirs is None else (_spread(self.theirs), f"{self.figure:.3f}")
        met = ["-", "-"] if bound is None else [f"<= {bound:g}", "yes" if self.figure <= bound else "no"]
        return [self.what, _spread(self.ours), theirs, ratio, *met]


@dataclass(frozen=True, slots=True)
class Report:
    """What a benchmark has found, for people and for programs."""

    text: str
    figures: Mapping[str, float | str]


def compared(
    rows: Sequence[Row], *, ours: str, theirs: str, notes: Sequence[str], bounds: Mapping[str, float] | None = None
) -> Report:
    """A table of quantities; notes stand above it, bounds are for the figures."""
    heading = ["MEASURED", ours.upper(), theirs.upper(), "RATIO", "BOUND", "MET"]
    cells = [row.cells((bounds or {}).get(row.key)) for row in rows]
    lines = [*notes, "", *table([heading, *cells]), "", _LEGEND]
    return Report("\n".join(lines), {row.key: round(row.figure, 4) for row in rows})


def events(heading: Sequence[str], rows: Sequence[Sequence[str]], legend: str) -> Report:
    """A table of what happened at events. The first two columns name the event and who was observed."""
    figures = {
        f"{row[0]}; {row[1]}; {name.lower()}": cell
        for row in rows
        for name, cell in zip(heading[2:], row[2:], strict=True)
    }
    return Report("\n".join(["", *table([heading, *rows]), "", legend]), figures)


def in_turn(
    runs: int, ours: Callable[[], Result], theirs: Callable[[], Result], *, warm_up: bool = False
) -> tuple[list[Result], list[Result]]:
    """So many pairs, ours first, and what each run gave. To warm up, each runs once more before."""
    if warm_up:
        ours()
        theirs()
    pairs = [(ours(), theirs()) for _ in range(runs)]
    return [first for first, _ in pairs], [second for _, second in pairs]


def seconds_until(happened: Callable[[], float], began: float) -> float | None:
    """The seconds to a moment; None if it does not come within its time."""
    try:
        return happened() - began
    except ClusterError:
        return None


def shown(value: float | None, form: str = "{:.1f}") -> str:
    """A value in a table of events."""
    return "none" if value is None else form.format(value)


def command(*options: Callable[[Any], Any]) -> Callable[[Callable[..., Report]], click.Command]:
    """Have a function that measures be a command with its name, these options and --json."""

    def made(measure: Callable[..., Report]) -> click.Command:
        @functools.wraps(measure)
        def measured(*, as_json: bool, **words: Any) -> None:
            machine = f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the start"
            report = measure(**words)
            click.echo(f"\n{machine}\n{report.text}")
            if as_json:
                click.echo(json.dumps(report.figures))

        decorated: Callable[..., None] = measured
        for option in reversed([_JSON, *options]):
            decorated = option(decorated)
        return click.command()(decorated)

    return made


def _spread(samples: Sequence[float]) -> str:
    if len(samples) == 1:
        return f"{samples[0]:.2f}"
    return f"{median(samples):.2f} ({min(samples):.2f}-{max(samples):.2f})"
