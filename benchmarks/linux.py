"""
The system calls that Python's own library lacks, as effects with a name.

Owns: their numbers, and turning a failure into an OSError.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

# From <linux/prctl.h> and <linux/sched.h>.
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWNS = 0x00020000


@contextmanager
def taking_orphans() -> Iterator[None]:
    """Be the parent of descendants whose own has left, and only within the block: a daemon belongs to init."""
    _take_orphans(yes=True)
    try:
        yield
    finally:
        _take_orphans(yes=False)


def unshare_mounts() -> None:
    """Have mounts of our own from now on, which may still be shared with others'; needs root."""
    _check("unshare", _libc().unshare(_CLONE_NEWNS))


def _take_orphans(*, yes: bool) -> None:
    _check("prctl", _libc().prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(yes), 0, 0, 0))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(call: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
