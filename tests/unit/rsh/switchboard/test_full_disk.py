"""A disk that is full takes no line of the log, which ends neither a command nor the switchboard."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpirt.rsh.switchboard.ledger import Ledger
from mpirt.rsh.switchboard.log import complain_of


@contextmanager
def full_disk() -> Iterator[None]:
    """Where all goes that is written to stderr. pytest would undo what a fixture does."""
    stderr, before = sys.stderr, os.dup(2)
    with Path("/dev/full").open("w", buffering=1) as full:
        os.dup2(full.fileno(), 2)
        sys.stderr = full
        try:
            yield
        finally:
            sys.stderr = stderr
            os.dup2(before, 2)
            os.close(before)


def test_an_account_that_can_not_be_written_either_is_left(tmp_path: Path) -> None:
    file = tmp_path / "termination-log"
    file.touch()
    ledger = Ledger()
    ledger.open({"MPIRT_ACCOUNT": str(file)}, is_resumed=False)
    ledger.begin_run()
    file.unlink()

    with full_disk():
        ledger.heard("a", "w-0", is_silent=True)

    assert not file.exists()


def test_an_internal_error_that_can_not_be_logged_is_left() -> None:
    with full_disk():
        complain_of(ZeroDivisionError())
