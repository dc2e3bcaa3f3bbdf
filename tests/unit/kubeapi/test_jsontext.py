"""JSON is read as the json module reads it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mpirt.kubeapi.request.jsontext import parse_json

VALUES = some.recursive(
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=20,
)
# What a Python without the scanner in C does.
WITHOUT = """
import sys
sys.modules["_json"] = None
from mpirt.kubeapi.request.jsontext import parse_json
assert parse_json(b' {"a": [1, 2.5, "x", null]} ') == {"a": [1, 2.5, "x", None]}
for wrong in ("", "{", "1 2", "NaN"):
    try:
        parse_json(wrong)
    except ValueError:
        continue
    raise SystemExit(wrong)
"""


@given(VALUES)
def test_a_value_is_what_was_written(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value


@given(some.text(alphabet='{}[]",:0123456789.eE+-truefalsn \n\\u00d8', max_size=30))
def test_what_the_json_module_refuses_is_refused(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            parse_json(text)
    else:
        assert parse_json(text) == expected


@pytest.mark.parametrize(
    "text", ["", " \n", "{", '{"a":', '{"a" 1}', "1 2", "{} {}", "nul", "NaN", "-Infinity", '"\n"']
)
def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ValueError, match="codec"):
        parse_json(b'"\xff"')


def test_blanks_around_are_none_of_it() -> None:
    assert parse_json(b'\r\n\t {"a": 1} \r\n') == {"a": 1}


def test_what_is_too_deep_is_refused() -> None:
    with pytest.raises(RecursionError):
        parse_json("[" * 200_000)


def test_a_python_without_the_scanner_reads_it_too() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, timeout=60)
