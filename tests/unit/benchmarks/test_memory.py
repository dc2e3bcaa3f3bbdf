"""Proportional set sizes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks import memory
from benchmarks.measure import Unmeasured

ROLLUP = """\
5581e3a00000-7ffd0b5fe000 ---p 00000000 00:00 0                          [rollup]
Rss:               17408 kB
Pss:                6912 kB
Pss_Dirty:          5632 kB
Pss_Anon:           5600 kB
SwapPss:               0 kB
"""

MEGABYTE = 2**20

# Holds that much memory of its own, says so, and waits for its stdin to end.
HOLDER = "import sys; held = b'x' * (32 * 2**20); print(flush=True); sys.stdin.read()"


def test_the_sum_is_read_and_not_its_parts() -> None:
    assert memory.pss_bytes(ROLLUP) == 6912 * 1024


def test_an_account_without_it_is_an_error() -> None:
    with pytest.raises(Unmeasured, match=r"^the kernel tells no proportional set size"):
        memory.pss_bytes("Rss:               17408 kB\n")


def test_a_descendants_memory_counts() -> None:
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLDER!r}], check=True)"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = memory.tree_bytes(process.pid)
        process.communicate()

    assert 32 * MEGABYTE < found < 32 * MEGABYTE + 64 * MEGABYTE


def test_a_process_that_has_ended_is_named() -> None:
    ended = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)

    with pytest.raises(Unmeasured, match=f"^process {ended} can't be looked at while it runs: "):
        memory.tree_bytes(ended)

    os.waitpid(ended, 0)
