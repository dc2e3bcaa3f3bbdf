"""What is read of a text that is nested too deeply for this Python, whichever that is."""

from __future__ import annotations

import json

import pytest

from mpirt.controller.model.reading import decode

# No Python reads so many levels.
TOO_DEEP = 100_000
# What is kept of them.
KEPT = 200


def objects(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def lists(levels: int) -> bytes:
    return b"[" * levels + b"1" + b"]" * levels


def depth(value: object) -> int:
    """How many levels there are, counted without recursion."""
    found = 0
    while isinstance(value, dict | list) and value:
        found += 1
        value = value["a"] if isinstance(value, dict) else value[0]
    return found


@pytest.mark.uncounted
@pytest.mark.parametrize("nested", [objects, lists], ids=["objects", "lists"])
def test_parts_that_are_too_deep_become_null(nested: object) -> None:
    assert depth(decode(nested(TOO_DEEP))) == KEPT  # type: ignore[operator]  # one of two functions


@pytest.mark.parametrize("levels", [0, 1, 100, KEPT])
def test_a_text_that_can_be_read_is_read_whole(levels: int) -> None:
    assert decode(objects(levels)) == json.loads(objects(levels))


@pytest.mark.parametrize("levels", [500, 1_100, 9_900, 9_988, 9_990, 20_000])
def test_an_object_is_read_at_every_depth_that_an_api_server_serves(levels: int) -> None:
    read = decode(b'{"metadata":{"name":"deep"},"spec":%b,"status":{"phase":"Failed"}}' % objects(levels))

    assert (read["metadata"], read["status"]) == ({"name": "deep"}, {"phase": "Failed"})
    assert depth(read["spec"]) >= KEPT - 1


@pytest.mark.uncounted
def test_other_objects_of_the_list_are_read_whole() -> None:
    before, after = b'{"metadata":{"name":"before"}}', b'{"metadata":{"name":"after"},"spec":{"a":[{"b":[1,{}]}]}}'

    read = decode(b'{"items":[%b,%b,%b,%b]}' % (before, objects(TOO_DEEP), lists(TOO_DEEP), after))

    assert [read["items"][0], read["items"][3]] == [json.loads(before), json.loads(after)]


@pytest.mark.uncounted
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(r'"}"', id="a bracket"),
        pytest.param(r'"[{"', id="brackets"),
        pytest.param(r'"\"}]"', id="an escaped quote"),
        pytest.param(r'"}\\"', id="a backslash at the end"),
        pytest.param(r'"\\\"}"', id="both"),
        pytest.param('"\u00fc}"', id="no ASCII"),
        pytest.param(r'"\u007d"', id="an escaped bracket"),
    ],
)
def test_brackets_in_strings_do_not_count(text: str) -> None:
    written = text.encode()

    read = decode(b'{"before":%b,"deep":%b,%b:2,"after":%b}' % (written, objects(TOO_DEEP), written, written))

    assert (read["before"], read["after"], read[json.loads(text)]) == (json.loads(text), json.loads(text), 2)


def test_strings_below_the_cut_are_left_out() -> None:
    deep = b'{"a":' * TOO_DEEP + b'"}]{["' + b"}" * TOO_DEEP

    assert depth(decode(b'{"a":%b,"b":"]"}' % deep)) == KEPT


@pytest.mark.uncounted
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"no JSON", id="a text"),
        pytest.param(b'{"a":' * TOO_DEEP, id="a text that ends in the depth"),
        pytest.param(objects(TOO_DEEP) + b"}", id="one bracket too many"),
        pytest.param(b'{"b":%b,"c":"' % objects(TOO_DEEP), id="a string that does not end"),
        pytest.param(b'{"b":%b,"c":"\\' % objects(TOO_DEEP), id="an escape that does not end"),
    ],
)
def test_a_text_that_is_no_json_is_an_error(text: bytes) -> None:
    with pytest.raises(ValueError, match="line 1 column"):
        decode(text)
