"""The account of a launcher is one line of a message that others write, too."""

from __future__ import annotations

import pytest

from mpirt.account import Account, Lost, read, write

TOLD = Account((Lost("train-worker-1", 250),), {"train-worker-0": "0123456789ab"})


def test_it_is_read_as_it_was_written() -> None:
    assert read(write(TOLD)) == TOLD


def test_it_is_found_among_lines_of_others() -> None:
    assert read(f"loss=0.3\n{write(TOLD)}\ndone") == TOLD


@pytest.mark.parametrize(
    "message",
    ["", "done", '{"mpirt.dev/account":', '{"mpirt.dev/account":7}', '{"mpirt.dev/account":' + "[" * 100_000],
)
def test_what_is_none_is_none(message: str) -> None:
    assert read(message) == Account()


def test_nothing_to_tell_is_no_line() -> None:
    assert write(Account()) == ""


def test_it_is_never_longer_than_what_a_kubelet_reads() -> None:
    again = {f"a-job-with-a-long-name-worker-{n}": "0123456789ab" for n in range(1000)}

    line = write(Account((Lost("train-worker-1", 250),), again))

    assert len(line) < 4096
    assert read(line).lost == (Lost("train-worker-1", 250),)
    assert len(read(line).again) > 50
