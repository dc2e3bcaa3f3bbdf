"""The table of `mpirt ps`."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.cli.ps.boards import Usage
from mpirt.cli.ps.table import cpu_time, cut, duration, printable, size, summary, table
from tests.unit.cli.boards import board, row

NOT_KNOWN: dict[str, Any] = {"node": "", "silence": None, "cpu": None, "memory": None}


class TestTheTable:
    def test_has_a_line_for_each_command(self) -> None:
        other = row(pod="train-worker-10", stdin=5, age=7, command="date", **NOT_KNOWN)
        text = table([row(), other])

        assert text == (
            "POD              NODE    STATE      AGE    CPU   MEM   OUT  IN  SILENT  COMMAND\n"
            "w-0              node-1  running  3m12s  1m15s  3.0G  1.5K   0      2s  orted -mca a b\n"
            "train-worker-10  -       running     7s      -     -  1.5K   5       -  date\n"
        )

    def test_is_cut_to_a_width(self) -> None:
        lines = table([row(command="x" * 300)], 80).splitlines()

        assert len(lines[1]) == 80
        assert lines[1].endswith("xxx...")

    def test_that_is_too_wide_is_cut_as_a_whole(self) -> None:
        assert [len(line) for line in table([row(pod="p" * 90, command="x" * 30)], 60).splitlines()] == [60, 60]

    def test_without_commands_is_a_heading(self) -> None:
        assert table([]).count("\n") == 1

    def test_holds_nothing_that_a_terminal_obeys(self) -> None:
        assert r"a\x1b[31m\nb\udcff" in table([row(command="a\x1b[31m\nb\udcff")])


class TestTheSummary:
    def test_tells_of_the_switchboard(self) -> None:
        assert summary(board(row(), usage=Usage(1.25, 20 * 1024 * 1024))) == (
            "switchboard 9: 1 command, 0 queued, watch: mpirt.dev/job=train watching, 0 buffered, "
            "12 of 1024 descriptors, 1.2 s CPU, 20M memory"
        )

    def test_leaves_out_what_is_not_known(self) -> None:
        assert summary(board(watches=(), sessions=2)) == (
            "switchboard 9: 2 commands, 0 queued, watch: none, 0 buffered, 12 of 1024 descriptors"
        )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0s"), (0.9, "0s"), (59, "59s"), (60, "1m00s"), (3599, "59m59s"), (7500, "2h05m"), (273600, "3d04h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0.0s"), (3.29, "3.2s"), (59.99, "59.9s"), (60, "1m00s"), (7500, "2h05m")]
)
def test_cpu_times(seconds: float, text: str) -> None:
    assert cpu_time(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (1023, "1023"), (1024, "1.0K"), (20480, "20K"), (5 * 1024**2, "5.0M"), (3000 * 1024**5, "3000P")],
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


def test_what_can_be_printed_stays_as_it_is() -> None:
    assert printable("Köln 你好") == "Köln 你好"


@pytest.mark.parametrize(
    ("width", "text"), [(10, "0123456789"), (8, "01234..."), (2, ".."), (0, "")]
)  # fmt: skip
def test_what_is_too_long_is_cut(width: int, text: str) -> None:
    assert cut("0123456789", width) == text
