"""
The live view of `mpirt ps --watch`.

Owns: the terminal while it lasts: its other screen, its keys, and what is on it. Needs rich, which nothing else of
mpirt does.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from mpirt.cli.ps.boards import Board, Rates, Row, ordered, rows_of
from mpirt.cli.ps.table import COLUMNS, NUMBERS, cells, cut, printable, summary
from mpirt.errors import ConfigError, MpirtError, UsageError

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod, RenderableType

_STDIN = 0
_WITHOUT = "leave --watch out, or repeat the command: watch -n 2 mpirt ps"
_STYLES = {
    **dict.fromkeys(("waiting", "queued", "dial", "hello"), "dim"),
    "detached": "yellow",
    "terminating": "red",
}
_KEYS = "q ends"
# Each look asks all keepers what their commands use. So many a second cost a few percent of a processor.
_ASKED_PER_SECOND = 250
_RATE, _RATE_AT = "%CPU", COLUMNS.index("CPU") + 1


def watch(ask: Callable[[], list[Board]], *, by: str, pause: float) -> None:
    """Show what `ask` answers until the user ends it. The first answer may raise MpirtError."""
    check()
    from rich.console import Console  # noqa: PLC0415  only a live view needs it
    from rich.live import Live  # noqa: PLC0415

    boards, problem, rates = ask(), "", Rates()
    console = Console()
    with (
        suppress(KeyboardInterrupt),
        _single_keys(),
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        while True:
            rows = ordered(rows_of(boards), by)
            if not problem:
                rates.look(rows)
            live.update(_screen(console, boards, rows, rates, by=by, problem=problem), refresh=True)
            if _ended_within(max(pause, len(rows) / _ASKED_PER_SECOND)):
                return
            try:
                boards, problem = ask(), ""
            except MpirtError as error:
                problem = str(error)


def check() -> None:
    """Whether there can be a live view. Raises UsageError and ConfigError."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("--watch needs a terminal, for input and output; leave it out, or use -o or --json")
    try:
        import rich  # noqa: F401, PLC0415
    except ImportError:
        raise ConfigError(f"--watch needs the Python package rich, which is not here; {_WITHOUT}") from None


def _screen(
    console: Console, boards: list[Board], rows: list[Row], rates: Rates, *, by: str, problem: str
) -> RenderableType:
    from rich.console import Group  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    width, height = console.size
    heads = [problem] if problem else [summary(board) for board in boards] or ["no commands are running"]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in (*COLUMNS[:_RATE_AT], _RATE, *COLUMNS[_RATE_AT:]):
        justify: JustifyMethod = "right" if name == _RATE or name in NUMBERS else "left"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")
    room = max(1, height - len(heads) - 3)
    for row in rows[:room]:
        style = _STYLES.get(row.command.state, "")
        texts = cells(row)
        texts.insert(_RATE_AT, rates.text(row))
        table.add_row(*(Text(text, no_wrap=True) for text in texts), style=style)
    hidden = f"{len(rows) - room} more below; " if len(rows) > room else ""
    lines = [Text(cut(printable(head), width), style="red" if problem else "") for head in heads]
    foot = Text(cut(f"{hidden}by {by}, {time.strftime('%H:%M:%S')}, {_KEYS}", width), style="dim")
    return Group(*lines, table, foot)


@contextmanager
def _single_keys() -> Iterator[None]:
    """Have each key at once, unseen. Ctrl-C stays a signal."""
    before = termios.tcgetattr(_STDIN)
    try:
        tty.setcbreak(_STDIN)
        yield
    finally:
        termios.tcsetattr(_STDIN, termios.TCSADRAIN, before)


def _ended_within(seconds: float) -> bool:
    """Whether the user ends it within that time."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([_STDIN], [], [], left)[0]:
            keys = os.read(_STDIN, 64)
            if not keys or b"q" in keys.lower():
                return True
    return False
