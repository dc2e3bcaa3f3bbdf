"""What an agent keeps of its command, and what a session resumes."""

from __future__ import annotations

import pytest

from mpirt.errors import PeerError
from mpirt.rsh.session.task import Record, Resumption
from mpirt.rsh.switchboard.frames import Handover, read_record, resumption, write_record

RECORD = Record("w-0", "0123456789abcdef", "worker", 4000, code=246, line="pod w-0 is being deleted")
NAMES = {10: "USR1", 15: "TERM"}


def handed(**more: object) -> Handover:
    return Handover("mpirt-rsh", "/", ("w-0", "true"), {}, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("record", [RECORD, Record("w", "n", "")], ids=["ended", "begun"])
def test_a_record_comes_back_as_it_was(record: Record) -> None:
    assert read_record(write_record(record)) == record


def test_a_long_line_is_cut_so_that_an_agent_takes_the_record() -> None:
    kept = write_record(Record("w", "n", "", code=244, line="ä" * 20_000))

    found = read_record(kept)

    assert len(kept) <= 8192
    assert (found.code, found.line) == (244, "ä" * 1250)


def test_a_record_that_is_too_long_without_its_line_stays_as_it_is() -> None:
    assert len(write_record(Record("w" * 9000, "n", "", line="x"))) > 8192


@pytest.mark.parametrize("kept", [b"{", b"[]", b"{}", b"7", b"\xff"])
def test_what_is_no_record_breaks_the_rules(kept: bytes) -> None:
    with pytest.raises(PeerError, match="can't be read"):
        read_record(kept)


@pytest.mark.parametrize("kept", [b"", write_record(None)], ids=["never kept", "taken back"])
def test_there_is_nothing_to_go_on_with(kept: bytes) -> None:
    assert resumption(handed(generation=3, kept=kept), NAMES) is None


def test_a_session_goes_on_with_all_that_the_agent_knows() -> None:
    handover = handed(
        generation=2,
        kept=write_record(RECORD),
        output=(5, 6),
        stdin_at=7,
        stdin=b"abc",
        stdin_ended=True,
        signals=(10, 99, 15),
    )

    assert resumption(handover, NAMES) == Resumption(
        RECORD, 2, (5, 6), 7, b"abc", stdin_ended=True, signals=(("USR1", 10), ("TERM", 15))
    )


def test_a_record_counts_as_that_of_another_process() -> None:
    found = resumption(handed(kept=write_record(RECORD)), NAMES)

    assert found is not None
    assert found.generation == 1
