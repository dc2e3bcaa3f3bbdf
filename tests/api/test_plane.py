"""The plane itself: it is gone when the run is, however that ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from testbed.kube.paths import PROJECT
from testbed.kube.wait import until

GONE_WITHIN = 20.0

# A run of its own: it has joined the plane in that folder, and waits.
RUN = """
import os, sys
from pathlib import Path
from testbed.plane import shared

made = shared.join(Path(sys.argv[1]), os.getpid())
assert made.is_ready()
print("joined", flush=True)
sys.stdin.read()
"""


def test_a_run_that_is_killed_leaves_no_process_of_its_plane(tmp_path: Path) -> None:
    folder = tmp_path / "plane"
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "joined\n"
        assert len(processes_of(folder)) >= 5

        run.kill()

    until(lambda: not processes_of(folder), within=GONE_WITHIN, what="the end of all processes")
    assert not (folder / "etcd").exists()


def processes_of(folder: Path) -> list[str]:
    """The command lines that name the folder, but for the run's own."""
    return [line for line in _command_lines() if f"{folder}" in line and RUN not in line]


def _command_lines() -> Iterator[str]:
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield (place / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
