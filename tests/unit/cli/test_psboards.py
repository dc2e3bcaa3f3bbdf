"""The document of `mpirt ps --json`, both ways, the order of commands, and how busy they are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mpirt.cli.ps.boards import Rates, Row, Usage, ordered, read, rows_of, write
from mpirt.errors import PeerError
from tests.unit.cli.boards import COMMAND, board, row


class TestTheDocument:
    def test_is_read_back_as_it_was(self) -> None:
        boards = [
            board(row(agent=Usage(1.5, 4096)), row(pod="w-1", silence=None, cpu=None), usage=Usage(0.5, 10)),
            board(watches=()),
        ]

        assert read(write(boards)) == boards

    def test_names_its_parts(self) -> None:
        [found] = json.loads(write([board(row(agent=Usage(1, 2)))]))["switchboards"]

        assert (found["folder"], found["pid"], found["cpu"], found["memory"]) == ("/dev/shm/x", 9, None, None)
        assert found["watches"][0]["state"] == "watching"
        assert (found["commands"][0]["agent_cpu"], found["commands"][0]["agent_memory"]) == (1, 2)

    def test_is_one_line_of_ascii(self) -> None:
        text = write([board(row(command="a\nb\udcff\x1b[31m"))])

        assert text.isascii()
        assert text.isprintable()
        assert rows_of(read(text))[0].command.command == "a\nb\udcff\x1b[31m"

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"switchboards": 1}', '{"switchboards": [[]]}'])
    def test_that_is_another_is_refused(self, text: str) -> None:
        with pytest.raises(PeerError):
            read(text)


class TestTheOrder:
    def test_of_pods_is_by_their_numbers(self) -> None:
        names = ["w-10", "w-2", "a", "w-1-b", "w", "w-1", "", f"w-{'9' * 5000}"]

        assert [each.command.pod for each in ordered([row(pod=name) for name in names], "pod")] == [
            *("", "a", "w", "w-1", "w-1-b", "w-2", "w-10", names[-1])
        ]

    @pytest.mark.parametrize(
        ("by", "found"), [("age", ["b", "a", "c"]), ("bytes", ["c", "a", "b"]), ("silence", ["a", "b", "c"])]
    )
    def test_by_a_number_has_the_greatest_first(self, by: str, found: list[str]) -> None:
        rows = [
            row(pod="c", age=1, stdout=0, stderr=0, stdin=9, silence=None),
            row(pod="b", age=9, stdout=1, stderr=2, stdin=0, silence=0.0),
            row(pod="a", age=3, stdout=1, stderr=3, stdin=0, silence=8.0),
        ]

        assert [each.command.pod for each in ordered(rows, by)] == found

    def test_of_equals_is_by_pod(self) -> None:
        rows = [row(pod="w-10"), row(pod="w-9")]

        assert [each.command.pod for each in ordered(rows, "age")] == ["w-9", "w-10"]


class TestARate:
    def between(self, before: dict[str, Any], after: dict[str, Any]) -> str:
        """Of two looks, of which the second is 2 s after the first."""
        rates = Rates()
        rates.look([Row(replace(COMMAND, cpu=10.0, measured=(100.0, 100.0), **before))])
        other = Row(replace(COMMAND, **{"cpu": 10.0, "measured": (102.0, 102.0), **after}))
        rates.look([other])
        return rates.text(other)

    @pytest.mark.parametrize(
        ("cpu", "text"),
        [
            pytest.param(10.0, "0%", id="idle"),
            pytest.param(10.5, "25%", id="a quarter"),
            pytest.param(18.0, "400%", id="four processors"),
            pytest.param(9.0, "-", id="less than before: it is another one"),
            pytest.param(None, "-", id="not known"),
        ],
    )
    def test_is_cpu_time_per_time(self, cpu: float | None, text: str) -> None:
        assert self.between({}, {"cpu": cpu}) == text

    def test_is_of_the_time_between_the_measurements_whenever_these_are_looked_at(self) -> None:
        assert self.between({}, {"cpu": 11.0, "measured": (100.5, 101.0)}) == "100%"

    def test_is_never_more_than_there_is_where_a_measurement_took_long(self) -> None:
        assert self.between({}, {"cpu": 12.0, "measured": (101.0, 104.0)}) == "50%"

    def test_needs_two_looks(self) -> None:
        rates = Rates()
        rates.look([row()])

        assert rates.text(row()) == "-"

    def test_stays_until_there_is_another_measurement(self) -> None:
        rates = Rates()
        for cpu, measured in ((10.0, 100.0), (10.0, 100.0), (11.0, 101.0), (11.0, 101.0)):
            rates.look([row(cpu=cpu, measured=(measured, measured))])

        assert rates.text(row()) == "100%"

    @pytest.mark.parametrize(
        "changes",
        [{"pod": "w-1"}, {"agent": 72}, {"namespace": "ab"}, {"command": "date"}],
        ids=["pod", "agent", "namespace", "command"],
    )
    def test_is_of_one_command(self, changes: dict[str, Any]) -> None:
        assert self.between({}, {"cpu": 11.0, **changes}) == "-"

    def test_begins_anew_where_the_command_was_not_known_for_a_while(self) -> None:
        rates = Rates()
        for cpu in (10.0, None, 20.0):
            rates.look([row(cpu=cpu)])

        assert rates.text(row()) == "-"
