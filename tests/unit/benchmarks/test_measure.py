"""A program's account is its own, and that of all its processes."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.measure import Unmeasured, run, started

MEGABYTE = 2**20
ENV = {"PATH": os.environ["PATH"]}

# A program as small as they come, and what it and the shell that starts it may have in memory.
SMALL, SMALL_PEAK = ["/bin/sh", "-c", ":"], 8 * MEGABYTE


def python(program: str) -> list[str]:
    return [sys.executable, "-I", "-c", program]


class TestPeakMemory:
    def test_the_size_of_whoever_measures_does_not_count(self) -> None:
        ballast = b"x" * (128 * MEGABYTE)

        peak = run(SMALL, env=ENV).peak_bytes

        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > len(ballast)
        assert 0 < peak < SMALL_PEAK

    def test_what_the_program_had_at_its_largest_counts(self) -> None:
        peak = run(python("held = b'x' * (64 * 2**20); del held"), env=ENV).peak_bytes

        assert 64 * MEGABYTE < peak < 64 * MEGABYTE + 48 * MEGABYTE

    def test_of_several_processes_it_is_the_largest_ones(self) -> None:
        large = "held = b'x' * (64 * 2**20)"

        peak = run(["/bin/sh", "-c", '"$@"; "$@"; :', "twice", *python(large)], env=ENV).peak_bytes

        assert 64 * MEGABYTE < peak < 64 * MEGABYTE + 48 * MEGABYTE


class TestTime:
    def test_a_childs_cpu_time_counts(self) -> None:
        busy = "import time\nwhile time.process_time() < 0.2: pass"

        cost = run(["/bin/sh", "-c", '"$@"; :', "once", *python(busy)], env=ENV)

        assert cost.cpu_seconds >= 0.2
        assert cost.wall_seconds >= 0.2

    def test_waiting_is_wall_time_and_no_cpu_time(self) -> None:
        cost = run(["sleep", "0.2"], env=ENV)

        assert cost.wall_seconds >= 0.2
        assert cost.cpu_seconds < 0.2


class TestSurroundings:
    def test_the_environment_is_the_one_that_is_given_and_stdin_is_empty(self) -> None:
        script = 'test "$GIVEN" = yes && test -z "$HOME" && test -z "$(cat)" && ! test -e /proc/self/fd/3'

        run(["/bin/sh", "-c", script], env={**ENV, "GIVEN": "yes"})

    def test_afterwards_orphans_are_inits_again(self, tmp_path: Path) -> None:
        run(SMALL, env=ENV)
        note = tmp_path / "orphan"
        orphan = python(f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)")

        with started(
            ["/bin/sh", "-c", f'"$@" & until test -s {note}; do :; done', "leave", *orphan], env=ENV
        ) as shell:
            shell.cost()
            pid = int(note.read_text())
            parent = psutil.Process(pid).ppid()
            psutil.Process(pid).kill()

        assert parent != os.getpid()


class TestWhatGoesWrong:
    def test_a_failed_run_is_no_measurement(self) -> None:
        with pytest.raises(Unmeasured, match=r"^sh ended with 7: out of luck$"):
            run(["/bin/sh", "-c", "echo out of luck >&2; exit 7"], env=ENV)

    def test_so_is_one_that_a_signal_ended(self) -> None:
        with pytest.raises(Unmeasured, match=r"^sh ended with -9: it said nothing$"):
            run(["/bin/sh", "-c", "kill -9 $$"], env=ENV)

    def test_so_is_one_that_does_not_end_and_it_is_killed(self) -> None:
        with started(["sleep", "600"], env=ENV) as program:
            with pytest.raises(Unmeasured, match=r"^sleep did not end within 0\.1 s$"):
                program.cost(within=0.1)
            pid = program.pid

        assert not psutil.pid_exists(pid)

    def test_a_program_that_is_not_there_is_named(self) -> None:
        with pytest.raises(Unmeasured, match=r"^mpirt-nothing ended with 127: .*not found$"):
            run(["/nowhere/mpirt-nothing"], env=ENV)


class TestAProgramThatRuns:
    def test_it_is_killed_at_the_end_of_the_block(self) -> None:
        with started(["sleep", "600"], env=ENV) as program:
            assert not program.has_ended()

        assert not psutil.pid_exists(program.pid)

    def test_what_it_said_can_be_read_while_it_writes(self) -> None:
        with started(["/bin/sh", "-c", "printf one; echo two >&2; sleep 600"], env=ENV) as program:
            while "two" not in program.said():
                assert not program.has_ended(within=0.01)

            assert program.said() == "onetwo"
