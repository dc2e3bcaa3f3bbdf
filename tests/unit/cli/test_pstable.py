"""The table of `mpirt ps`, and the format string of `mpirt ps -o`."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.cli.ps.boards import Usage
from mpirt.cli.ps.table import NAMES, Format, cpu_time, cut, duration, printable, size, summary, table
from mpirt.errors import UsageError
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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("{pod} {state} {age}", "w-0 running 192.0", id="names"),
        pytest.param("", "", id="nothing"),
        pytest.param("{{{pod}}} %", "{w-0} %", id="braces"),
        pytest.param("{pod:6}|{pod:>6}|{pod:^6}|", "w-0   |   w-0| w-0  |", id="widths"),
        pytest.param("{command:.5}", "orted", id="precision"),
        pytest.param("{age:6.0f}|{stdout:<6d}|", "   192|1500  |", id="numbers"),
        pytest.param("{started} {silence} {held} {agent}", "1700000000 2.5 yes 71", id="rounded"),
    ],
)
def test_a_format(text: str, line: str) -> None:
    assert Format(text).line(row()) == line


def test_every_name_has_a_value() -> None:
    text = " ".join(f"{name}={{{name}}}" for name in NAMES)

    assert Format(text).line(row(agent=Usage(0.5, 4096))) == (
        "pod=w-0 node=node-1 namespace=ml container=worker command=orted -mca a b agent=71 state=running "
        "started=1700000000 age=192.0 stdout=1500 stderr=36 stdin=0 silence=2.5 held=yes generation=0 waiting=0 "
        "cpu=75.3 memory=3221225472 processes=5 agent_cpu=0.5 agent_memory=4096"
    )


def test_what_is_not_known_is_a_dash_of_the_same_width() -> None:
    found = row(silence=None, agent=Usage(), held=False, cpu=None, memory=None)

    form = Format("{silence:>6.1f}|{agent_memory:<4}|{agent_cpu}|{held}|{cpu:3.0f}|{memory}")
    assert form.line(found) == "     -|-   |-|no|-  |-"


def test_a_command_stays_on_its_line() -> None:
    assert Format("{command}").line(row(command="a\nb\x1b")) == r"a\nb\x1b"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{rank}", "unknown name 'rank'; the names are: pod, node, ", id="unknown"),
        pytest.param("{}", "unknown name ''", id="without a name"),
        pytest.param("{0}", "unknown name '0'", id="number"),
        pytest.param("{pod.__class__}", "unknown name 'pod.__class__'", id="attribute"),
        pytest.param("{pod[0]}", "unknown name 'pod[0]'", id="index"),
        pytest.param("{pod!r}", "{pod!r}: expected a width and a precision at most", id="conversion"),
        pytest.param("{pod:{age}}", "{pod:{age}}: expected a width", id="nested"),
        pytest.param("{pod:9999}", "{pod:9999}: expected a width", id="huge"),
        pytest.param("{pod:.2f}", "{pod:.2f}: Unknown format code 'f'", id="text as a number"),
        pytest.param("{age:d}", "{age:d}: Unknown format code 'd'", id="fraction as a whole number"),
        pytest.param("{pod", "expected '}' before end of string", id="open"),
        pytest.param("pod}", "Single '}' encountered", id="closed"),
    ],
)
def test_a_format_that_can_not_be(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Format(text)

    assert said in str(caught.value)
