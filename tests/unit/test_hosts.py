"""Lists of hosts: what a host may be, how lists are written, and how a list by another hand is read."""

from __future__ import annotations

import pytest

from mpirt.errors import SpecError
from mpirt.hosts import Form, Host, parse_hosts, render

TWO = (Host("train-worker-0", 4), Host("train-worker-1", 2))


class TestHost:
    @pytest.mark.parametrize(
        "name",
        [
            pytest.param("train-worker-0", id="pod name"),
            pytest.param("train-worker-0.train.ml.svc.cluster.local", id="name in a headless service"),
            pytest.param("10.244.1.7", id="IPv4 address"),
            pytest.param("GPU_node_07", id="capitals and underscores"),
            pytest.param("a" * 63, id="longest label"),
            pytest.param(".".join(["a" * 63] * 3 + ["b" * 61]), id="longest name"),
        ],
    )
    def test_a_reachable_host_is_a_name(self, name: str) -> None:
        assert Host(name, 1).name == name

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param("", id="nothing"),
            pytest.param("-oProxyCommand=x", id="would be taken for an option"),
            pytest.param("worker-0-", id="ends in a hyphen"),
            pytest.param("worker 0", id="blank inside"),
            pytest.param("worker-0\n", id="line end"),
            pytest.param("ann@worker-0", id="user"),
            pytest.param("fd00::7", id="IPv6 address"),
            pytest.param("worker..train", id="empty label"),
            pytest.param("worker.", id="ends in a dot"),
            pytest.param("wörker", id="not ASCII"),
            pytest.param("a" * 64, id="label too long"),
            pytest.param(".".join(["a" * 63] * 3 + ["b" * 62]), id="name too long"),
        ],
    )
    def test_a_word_that_no_form_of_list_can_hold_is_no_name(self, name: str) -> None:
        with pytest.raises(SpecError) as caught:
            Host(name, 1)

        assert str(caught.value) == f"host: not a host name: {name!r}"

    @pytest.mark.parametrize("slots", [0, -1])
    def test_a_host_has_room_for_one_process_at_least(self, slots: int) -> None:
        with pytest.raises(SpecError) as caught:
            Host("worker-0", slots)

        assert str(caught.value) == f"slots: must be at least 1, got {slots}"

    def test_a_host_never_changes(self) -> None:
        with pytest.raises(AttributeError, match="frozen"):
            TWO[0].slots = 3  # type: ignore[misc]  # the assignment is the point


class TestWriting:
    @pytest.mark.parametrize(
        ("form", "text"),
        [
            pytest.param(Form.HOROVOD, "train-worker-0:4\ntrain-worker-1:2\n", id="horovod"),
            pytest.param(Form.HYDRA, "train-worker-0:4\ntrain-worker-1:2\n", id="hydra"),
            pytest.param(Form.HOSTFILE, "train-worker-0 slots=4\ntrain-worker-1 slots=2\n", id="hostfile"),
            pytest.param(
                Form.JSON,
                '[{"name": "train-worker-0", "slots": 4}, {"name": "train-worker-1", "slots": 2}]\n',
                id="json",
            ),
        ],
    )
    def test_each_form(self, form: Form, text: str) -> None:
        assert render(TWO, form) == text

    @pytest.mark.parametrize(
        ("form", "text"), [(Form.HOROVOD, ""), (Form.HOSTFILE, ""), (Form.HYDRA, ""), (Form.JSON, "[]\n")]
    )
    def test_no_hosts(self, form: Form, text: str) -> None:
        assert render((), form) == text

    def test_horovodruns_own_reading_of_a_hostfile_finds_the_numbers(self) -> None:
        # What horovodrun 0.28 does with every line of --hostfile.
        found = [
            (line.split()[0], line.rstrip().split("=")[1]) for line in render(TWO, Form.HOSTFILE).splitlines()
        ]

        assert found == [("train-worker-0", "4"), ("train-worker-1", "2")]


class TestReading:
    @pytest.mark.parametrize(
        ("text", "slots"),
        [
            pytest.param("worker-0", 1, id="name alone"),
            pytest.param("worker-0 slots=4", 4, id="Open MPI"),
            pytest.param("worker-0 slots = 4", 4, id="blanks around the equals sign"),
            pytest.param("\tworker-0\tslots=4  \r", 4, id="tabs, blanks and a carriage return"),
            pytest.param("worker-0 count=4", 4, id="count"),
            pytest.param("worker-0 cpu=4", 4, id="cpu"),
            pytest.param("worker-0 slots=4 max_slots=8", 4, id="limit after the number"),
            pytest.param("worker-0 max-slots=8 slots=4", 4, id="limit before the number"),
            pytest.param("worker-0 slots=4 slots_max=4", 4, id="limit equal to the number"),
            pytest.param("worker-0 slots-max=8", 8, id="limit alone"),
            pytest.param("worker-0:4", 4, id="Hydra and Horovod"),
            pytest.param("worker-0:4 max_slots=8", 4, id="Hydra's form with a limit"),
            pytest.param("worker-0 slots=999999999", 999_999_999, id="largest number"),
            pytest.param("worker-0 slots=04", 4, id="leading zero"),
        ],
    )
    def test_a_line_is_a_host_with_its_slots(self, text: str, slots: int) -> None:
        assert parse_hosts(text) == (Host("worker-0", slots),)

    def test_comments_and_blank_lines_say_nothing(self) -> None:
        text = "# the first rack\n\n   \nworker-0 slots=4 # slots=8 after the upgrade\n#worker-1\nworker-2:2#x\n"

        assert parse_hosts(text) == (Host("worker-0", 4), Host("worker-2", 2))

    @pytest.mark.parametrize("text", ["", "\n\n", "# nobody yet\n"])
    def test_a_list_may_be_empty(self, text: str) -> None:
        assert parse_hosts(text) == ()

    def test_a_host_mentioned_again_gets_the_sum_where_it_stood_first(self) -> None:
        text = "worker-1\nworker-0 slots=2\nworker-1\nworker-1:3\n"

        assert parse_hosts(text) == (Host("worker-1", 5), Host("worker-0", 2))

    @pytest.mark.parametrize("form", [Form.HOROVOD, Form.HOSTFILE, Form.HYDRA])
    def test_written_hosts_are_read_back(self, form: Form) -> None:
        assert parse_hosts(render(TWO, form)) == TWO


class TestRefusing:
    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            pytest.param("ann@w slots=2", "host: not a host name: 'ann@w'", id="user"),
            pytest.param("^w", "host: not a host name: '^w'", id="Open MPI's exclusion"),
            pytest.param("+n0", "host: not a host name: '+n0'", id="Open MPI's relative node"),
            pytest.param("slots=4", "host: not a host name: 'slots=4'", id="no name"),
            pytest.param(":4", "host: not a host name: ''", id="empty name"),
            pytest.param("w slots=0", "slots: must be at least 1, got 0", id="no slots"),
            pytest.param("w:0", "slots: must be at least 1, got 0", id="no slots in Hydra's form"),
            pytest.param("w max_slots=0", "slots: must be at least 1, got 0", id="limit of nothing"),
            ("w slots=4 max_slots=3", "max_slots: must not be below slots=4, got 3"),
            pytest.param("w slots=1 slots=2", "slots: given twice in 'w slots=1 slots=2'", id="twice"),
            pytest.param("w:1 slots=2", "slots: given twice in 'w:1 slots=2'", id="twice in two forms"),
            ("w 4", "host: expected slots=N or max_slots=N after the name, got '4'"),
            ("w port=22", "host: expected slots=N or max_slots=N after the name, got 'port=22'"),
            ("w slots", "host: expected slots=N or max_slots=N after the name, got 'slots'"),
        ],
    )
    def test_the_line_and_the_fault_are_named(self, line: str, problem: str) -> None:
        with pytest.raises(SpecError) as caught:
            parse_hosts(f"# comment\n\nworker-0 slots=4\n{line}\nworker-1\n")

        assert str(caught.value) == f"line 4: {problem}"
        assert caught.value.field == "line 4"

    @pytest.mark.parametrize(
        ("line", "field", "digits"),
        [
            pytest.param("w slots=-1", "slots", "-1", id="negative"),
            pytest.param("w slots=", "slots", "", id="no number"),
            pytest.param("w:", "slots", "", id="colon alone"),
            pytest.param("w:two", "slots", "two", id="a word"),
            pytest.param("w:2:3", "slots", "2:3", id="two numbers"),
            pytest.param("w slots=1_0", "slots", "1_0", id="Python's way to write it"),
            pytest.param("w slots=٤", "slots", "٤", id="another script's digit"),
            pytest.param("w slots=1000000000", "slots", "1000000000", id="more than a C int may hold"),
            pytest.param("w max_slots=x", "max_slots", "x", id="limit is no number"),
        ],
    )
    def test_a_number_has_one_to_nine_digits(self, line: str, field: str, digits: str) -> None:
        with pytest.raises(SpecError) as caught:
            parse_hosts(line)

        problem = f"must be a whole number of at most nine digits, got {digits!r}"
        assert str(caught.value) == f"line 1: {field}: {problem}"
