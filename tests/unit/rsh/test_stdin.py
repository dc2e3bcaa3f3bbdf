"""Stdin flows when the pod has room for it."""

from __future__ import annotations

import pytest

from mpirt.rsh.protocol import wrapper
from mpirt.rsh.session.stdinflow import StdinFlow


def test_none_is_read_before_the_command_runs() -> None:
    assert StdinFlow().room == 0


def test_one_piece_is_under_way_at_a_time() -> None:
    flow = StdinFlow()
    flow.started(raw=True)
    assert flow.room == wrapper.RAW_PIECE

    assert flow.piece(b"abc") == b"D3\nabc"
    assert flow.room == 0
    assert flow.acknowledged()
    assert flow.room == wrapper.RAW_PIECE


def test_a_pod_without_tools_takes_smaller_ones_as_text() -> None:
    flow = StdinFlow()
    flow.started(raw=False)

    assert flow.room == wrapper.TEXT_PIECE
    assert flow.piece(b"\0") == b"P\\000\n"


def test_its_end_is_passed_on_and_nothing_is_read_after_it() -> None:
    flow = StdinFlow()
    flow.started(raw=True)

    assert flow.end() == b"E\n"
    assert flow.room == 0


def test_more_than_there_is_room_for_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="there is room for 0 bytes of stdin, not 1"):
        StdinFlow().piece(b"a")


def test_an_acknowledgement_of_nothing_is_noticed() -> None:
    assert not StdinFlow().acknowledged()
