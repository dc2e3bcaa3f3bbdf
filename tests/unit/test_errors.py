"""The error tree, and the exit codes with their page."""

from __future__ import annotations

import json
import re

import pytest

from mpirt import errors
from mpirt.errors import ExitCode, MpirtError, SpecError
from tests.promises import promise
from tests.unit.layers import PROJECT

# Scripts depend on these: a number that was published never gets another meaning.
PUBLISHED = {
    "OK": 0,
    "USAGE": 240,
    "CONFIG": 241,
    "REFUSED": 242,
    "NO_POD": 243,
    "UNREACHABLE": 244,
    "PEER": 245,
    "POD_DELETED": 246,
    "EVICTED": 247,
    "CONTAINER_DIED": 248,
    "NODE_LOST": 249,
    "CONNECTION_LOST": 250,
    "UNKNOWN_END": 251,
    "NO_SHELL": 252,
    "NOT_READY": 253,
    "INTERNAL": 255,
}


def test_every_exit_code_keeps_its_number() -> None:
    assert {code.name: code.value for code in ExitCode} == PUBLISHED


def test_no_code_but_ok_is_one_that_commands_commonly_end_with() -> None:
    # 128 + 64 is the last signal's; above it a program's own code is rare.
    assert all(code == ExitCode.OK or 192 < code <= 255 for code in ExitCode)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("MpirtError", 255),
        ("UsageError", 240),
        ("ConfigError", 241),
        ("SpecError", 241),
        ("Refused", 242),
        ("NoPod", 243),
        ("Unreachable", 244),
        ("PeerError", 245),
        ("NoShell", 252),
        ("NotReady", 253),
    ],
)
def test_every_error_brings_its_code(name: str, code: int) -> None:
    error = getattr(errors, name)

    assert issubclass(error, MpirtError)
    assert error.code == code


def test_a_value_that_cannot_be_says_where_it_stands() -> None:
    error = SpecError("spec.slotsPerWorker", "must be at least 1, got 0")

    assert str(error) == "spec.slotsPerWorker: must be at least 1, got 0"
    assert (error.field, error.problem) == ("spec.slotsPerWorker", "must be at least 1, got 0")


def test_an_error_that_nobody_foresaw_is_told_by_its_place_and_never_by_its_text() -> None:
    with pytest.raises(KeyError) as caught:
        dict[str, str]()["a password, say"]

    line = errors.internal_error(caught.value)

    assert line == f"internal error: KeyError at {__name__}:{caught.tb.tb_lineno}; please report it"


def test_its_place_is_where_it_was_raised_not_where_it_was_called_from() -> None:
    with pytest.raises(ValueError, match="Expecting value") as caught:
        json.loads("a password, say")

    assert "JSONDecodeError at json.decoder:" in errors.internal_error(caught.value)


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert "ValueError at nowhere;" in errors.internal_error(ValueError("x"))


ROW = re.compile(r"^\| (\d+) \| `(\w+)` \| (.+?) \| (.*)\|$", re.MULTILINE)
PAGE = (PROJECT / "docs" / "exit-codes.md").read_text(encoding="utf-8")


@promise(
    "Every exit code of mpirt is documented, with its meaning and what to do.",
    of="mpirt",
    no_cluster="two files are compared",
)
def test_the_page_lists_every_code_in_order_with_a_meaning_and_a_remedy() -> None:
    rows = [(int(number), name) for number, name, _, _ in ROW.findall(PAGE)]

    assert rows == [(code.value, code.name) for code in ExitCode]
    for number, _, meaning, remedy in ROW.findall(PAGE):
        assert meaning.strip().endswith("."), number
        assert number == "0" or remedy.strip().endswith("."), number
