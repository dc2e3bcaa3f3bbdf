"""The document of `mpirt ps --json`, both ways, and the order of commands."""

from __future__ import annotations

import json

import pytest

from mpirt.cli.ps.boards import Usage, ordered, read, rows_of, write
from mpirt.errors import PeerError
from tests.unit.cli.boards import board, row


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
