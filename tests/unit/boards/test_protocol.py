"""PODS_REQUEST, byte by byte."""

from __future__ import annotations

import pytest

from mpirt.boards.protocol import Question, read_question, write_question
from mpirt.errors import PeerError

PAYLOAD = b"\x02\0\0\0\x01\0\0\0ml\0a=b\0c=d,e\0HOME=/r=\xff\0"
QUESTION = Question("ml", ("a=b", "c=d,e"), {"HOME": "/r=\udcff"})


def test_a_question_is_written_as_the_contract_has_it() -> None:
    assert write_question(QUESTION) == PAYLOAD


def test_a_question_is_read_as_the_contract_has_it() -> None:
    assert read_question(PAYLOAD) == QUESTION


@pytest.mark.parametrize("length", range(len(PAYLOAD)))
def test_a_question_that_is_cut_off_anywhere_breaks_the_rules(length: int) -> None:
    with pytest.raises(PeerError, match="does not hold what it says"):
        read_question(PAYLOAD[:length])


@pytest.mark.parametrize("payload", [PAYLOAD + b"\0", b"\xff" * 8 + PAYLOAD[8:]], ids=["more", "huge counts"])
def test_a_question_with_other_counts_than_texts_breaks_the_rules(payload: bytes) -> None:
    with pytest.raises(PeerError, match="does not hold what it says"):
        read_question(payload)
