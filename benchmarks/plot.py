"""
Curves over a count, both axes logarithmic, as an SVG.

Owns: the drawing. Must not know what the curves are. No I/O.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _GAP = 420, 340, 30
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 404, 40, 288
_COLOURS = ("#1b6ca8", "#c0504d", "#4f8f4f", "#7a5aa6", "#b8860b", "#5f6b73")
_INK, _GRID = "#333333", "#dddddd"


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves in the same unit: by name the points (count, value), in order; both are more than 0."""

    title: str
    curves: Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True, slots=True)
class _Axis:
    """A range of values, and where it lies in the drawing."""

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        return self.begin + (self.end - self.begin) * math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> Iterator[float]:
        for power in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))):
            for step in (1, 2, 5):
                if self.low <= step * 10.0**power <= self.high:
                    yield step * 10.0**power


def svg(panels: Sequence[Panel], *, across: str) -> str:
    """One panel beside the other; `across` is what is counted. A name has the same colour in all."""
    names = dict.fromkeys(name for panel in panels for name in panel.curves)
    colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}
    width, height = len(panels) * (_WIDTH + _GAP) - _GAP, _HEIGHT + 18 * (len(names) + 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for place, panel in enumerate(panels):
        shift = place * (_WIDTH + _GAP)
        lines += [f'<g transform="translate({shift} 0)">', *_drawn(panel, colours, across), "</g>"]
    for place, (name, colour) in enumerate(colours.items()):
        y = _HEIGHT + 18 * (place + 1)
        lines += [_line((_LEFT, y - 4), (_LEFT + 24, y - 4), colour, 2), _text(_LEFT + 32, y, name, "start")]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _drawn(panel: Panel, colours: Mapping[str, str], across: str) -> Iterator[str]:
    counts, values = zip(*(point for curve in panel.curves.values() for point in curve), strict=True)
    # With a little air on both sides.
    x = _Axis(min(counts) / 1.4, max(counts) * 1.4, _LEFT, _RIGHT)
    y = _Axis(min(values) / 1.4, max(values) * 1.4, _BOTTOM, _TOP)
    yield _text(_LEFT, 22, panel.title, "start", size=14)
    for tick in x.ticks():
        yield _line((x.place(tick), y.begin), (x.place(tick), y.end), _GRID)
        yield _text(x.place(tick), y.begin + 16, f"{tick:g}", "middle")
    for tick in y.ticks():
        yield _line((x.begin, y.place(tick)), (x.end, y.place(tick)), _GRID)
        yield _text(x.begin - 6, y.place(tick) + 4, f"{tick:g}", "end")
    yield _text((x.begin + x.end) / 2, _HEIGHT - 14, across, "middle")
    for name, curve in panel.curves.items():
        drawn = [(x.place(count), y.place(value)) for count, value in curve]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in drawn)
        yield f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="2"/>'
        yield from (
            f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3" fill="{colours[name]}"/>' for left, top in drawn
        )


def _line(begin: tuple[float, float], end: tuple[float, float], colour: str, width: int = 1) -> str:
    where = f'x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {where} stroke="{colour}" stroke-width="{width}"/>'


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 11) -> str:
    style = f'font-family="sans-serif" font-size="{size}" fill="{_INK}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
