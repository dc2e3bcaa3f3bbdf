"""
Curves over a count, both axes logarithmic, as an SVG.

Owns: the drawing. Must not know what the curves are. No I/O.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _GAP = 420, 340, 30
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 40, 52
_LEGEND_LINE = 18
_COLOURS = ("#1b6ca8", "#c0504d", "#4f8f4f", "#7a5aa6")
_INK, _GRID = "#333333", "#dddddd"
_FONT = 'font-family="sans-serif"'


@dataclass(frozen=True, slots=True)
class Curve:
    """Points (count, value), in order; both are more than 0."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves in the same unit."""

    title: str
    curves: Sequence[Curve]


def svg(panels: Sequence[Panel], *, across: str) -> str:
    """One panel beside the other; `across` is what is counted. A name has the same colour in all."""
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}
    width = len(panels) * (_WIDTH + _GAP) - _GAP
    height = _HEIGHT + _LEGEND_LINE * len(names) + _LEGEND_LINE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for place, panel in enumerate(panels):
        lines.append(f'<g transform="translate({place * (_WIDTH + _GAP)} 0)">')
        lines += _drawn(panel, colours, across)
        lines.append("</g>")
    for place, (name, colour) in enumerate(colours.items()):
        y = _HEIGHT + _LEGEND_LINE * (place + 1)
        lines.append(_line((_LEFT, y - 4), (_LEFT + 24, y - 4), colour, 2))
        lines.append(_text(_LEFT + 32, y, name, "start"))
    return "\n".join([*lines, "</svg>"]) + "\n"


@dataclass(frozen=True, slots=True)
class _Axis:
    """A range of values, and where it lies in the drawing."""

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        share = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> Iterator[float]:
        """1, 2 and 5 of each power of ten, or the powers alone where those are many."""
        low, high = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1,) if high - low > 2 else (1, 2, 5)  # noqa: PLR2004  as many powers as have room for more
        for power in range(low, high + 1):
            for step in steps:
                if self.low * 0.999 <= step * 10.0**power <= self.high * 1.001:
                    yield step * 10.0**power


def _axis(values: Sequence[float], begin: float, end: float) -> _Axis:
    """With a little air on both sides."""
    return _Axis(min(values) / 1.4, max(values) * 1.4, begin, end)


def _drawn(panel: Panel, colours: dict[str, str], across: str) -> Iterator[str]:
    points = [point for curve in panel.curves for point in curve.points]
    if not points:
        return
    x = _axis([count for count, _ in points], _LEFT, _WIDTH - _RIGHT)
    y = _axis([value for _, value in points], _HEIGHT - _BOTTOM, _TOP)
    yield _text(_LEFT, 22, panel.title, "start", size=14)
    for tick in x.ticks():
        yield _line((x.place(tick), y.begin), (x.place(tick), y.end), _GRID)
        yield _text(x.place(tick), y.begin + 16, f"{tick:g}", "middle")
    for tick in y.ticks():
        yield _line((x.begin, y.place(tick)), (x.end, y.place(tick)), _GRID)
        yield _text(x.begin - 6, y.place(tick) + 4, f"{tick:g}", "end")
    yield _text((x.begin + x.end) / 2, _HEIGHT - 14, across, "middle")
    for curve in panel.curves:
        colour = colours[curve.name]
        drawn = [(x.place(count), y.place(value)) for count, value in curve.points]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in drawn)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield from (f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3" fill="{colour}"/>' for left, top in drawn)


def _line(begin: tuple[float, float], end: tuple[float, float], colour: str, width: int = 1) -> str:
    where = f'x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {where} stroke="{colour}" stroke-width="{width}"/>'


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 11) -> str:
    style = f'{_FONT} font-size="{size}" fill="{_INK}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
