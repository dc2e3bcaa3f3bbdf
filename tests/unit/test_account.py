"""The account of a launcher is one line of a message that others write, too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpirt.account import Account, Lost, of_others, read, without_data, write

TOLD = Account((Lost("train-worker-1", 250),), ("train-worker-2",), {"train-worker-0": "0123456789ab"})


def test_an_account_is_read_as_it_was_written() -> None:
    assert read(write(TOLD)) == TOLD


def test_an_account_is_found_among_other_lines() -> None:
    message = f"loss=0.3\n{write(TOLD)}done\n"

    assert read(message) == TOLD
    assert of_others(message) == "loss=0.3\ndone\n"


@pytest.mark.parametrize(
    "message",
    ["", "done", '{"mpirt.dev/account":', '{"mpirt.dev/account":7}', '{"mpirt.dev/account":' + "[" * 100_000],
)
def test_a_message_without_an_account_has_none(message: str) -> None:
    assert read(message) == Account()


def test_that_all_is_told_is_told_even_if_it_is_nothing() -> None:
    assert read(write(Account(is_settled=True))) == Account(is_settled=True)
    assert read(write(replace(TOLD, is_settled=True))).lost == TOLD.lost


def test_nothing_to_tell_is_no_line() -> None:
    assert write(Account()) == ""


def test_an_account_is_never_longer_than_what_a_kubelet_reads() -> None:
    again = {f"a-job-with-a-long-name-worker-{n}": "0123456789ab" for n in range(1000)}

    line = write(Account((Lost("train-worker-1", 250),), again=again))

    assert len(line) < 4096
    assert read(line).lost == (Lost("train-worker-1", 250),)
    assert len(read(line).again) > 40


def test_an_account_of_a_thousand_pods_is_not_longer_and_costs_no_more() -> None:
    pods = [f"train-worker-{n}" for n in range(1000)]

    told = read(write(Account(tuple(Lost(pod, 250, "x" * 2000) for pod in pods), tuple(pods))))

    assert (len(told.lost), len(told.silent)) == (10, 10)


def test_people_read_what_mpirt_rsh_said() -> None:
    lines = write(Account((Lost("train-worker-1", 246, "pod train-worker-1 was deleted"),)))

    assert without_data(lines) == "mpirt-rsh: pod train-worker-1 was deleted"
    assert read(lines).lost == (Lost("train-worker-1", 246),)
