"""What is read of other processes, and that one which has ended reads as nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from mpirt.cli.ps.sources import cpu_seconds, memory, owner
from mpirt.processes import age, parent


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_child_is_read(child: subprocess.Popen[bytes]) -> None:
    assert (parent(child.pid), owner(child.pid)) == (os.getpid(), os.geteuid())
    assert (memory(os.getpid()) or 0) > 1024 * 1024
    assert (cpu_seconds(os.getpid()) or 0.0) > 0


def test_an_age_is_that_of_the_process() -> None:
    before = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        found = age(process.pid)

        # The kernel counts in hundredths of a second.
        assert 0 <= found <= time.monotonic() - before + 0.02
        process.kill()


@pytest.mark.parametrize("pid", [None, 0, 2**22 + 1], ids=["none", "another namespace's", "ended"])
def test_a_process_that_can_not_be_seen_reads_as_nothing(pid: int | None) -> None:
    assert (age(pid), parent(pid), owner(pid), cpu_seconds(pid), memory(pid)) == (0.0, 0, None, None, None)
