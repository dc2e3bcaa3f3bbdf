"""The format string of `mpirt ps -o`."""

from __future__ import annotations

import pytest

from mpirt.cli.ps.boards import Usage
from mpirt.cli.ps.format import NAMES, Format
from mpirt.errors import UsageError
from tests.unit.cli.boards import row


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
