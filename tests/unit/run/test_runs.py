"""Whole runs of small folders of tests: what is run again, what is said, and with which code it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.layers import PROJECT

# It fails when it is run for the first time.
FLAKY = """
def test_{name}():
    is_first = not pathlib.Path("{name}").exists()
    pathlib.Path("{name}").touch()
    print("{name} runs")
    assert not is_first
"""
# It fails whenever it is run for an odd time.
EACH_TIME = """
def test_tide():
    runs = pathlib.Path("runs")
    with runs.open("a") as file:
        file.write("x")
    assert len(runs.read_text()) % 2 == 0
"""
OF_A_FIXTURE = """
@pytest.fixture(scope="module")
def place():
    is_first = not pathlib.Path("place").exists()
    pathlib.Path("place").touch()
    assert not is_first
@pytest.mark.parametrize("number", range(3))
def test_in_place(place, number): pass
"""
PASSING = "def test_good(): pass\n"
ALWAYS = "def test_bad(): assert False\n"

MAKEFILE = """
PYTEST := {python} -m pytest
one: ; $(PYTEST) one.py
two: ; $(PYTEST) two.py
first: ; $(PYTEST) -x one.py
layer: ; {python} -m tests.run layer --at-once $(WORKERS) cases
rest: ; {python} -m tests.run layer --at-once 1 left
oldest: ; $(PYTEST) oldest.py
both: ; {python} -m tests.run layer --at-once 1 --beside others cases
other: ; exit 3
"""

STOPPED = "pytest one.py stopped before the end of 1 of 2 tests"

# What these small ones don't need takes half of their time.
_LEFT_OUT = "-p no:hypothesispytest -p no:cacheprovider"


@dataclass(frozen=True)
class Checkout:
    """A folder with a Makefile and tests."""

    root: Path

    def write(self, file: str, *tests: str) -> None:
        path = self.root / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("import os, pathlib, pytest\n" + "".join(tests), encoding="utf-8")

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.run", *words],
            check=False,
            cwd=self.root,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(PROJECT),
                "PYTEST_ADDOPTS": _LEFT_OUT,
                **variables,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def summary(self, folder: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / f"build/{folder}/summary.json").read_text())
        return found

    def logs(self, folder: str) -> list[str]:
        return sorted(path.name for path in self.root.glob(f"build/{folder}/*/*.log"))

    def was_run_again(self) -> bool:
        return any(self.root.glob("build/f*/*/second.log"))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "Makefile").write_text(MAKEFILE.format(python=sys.executable), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n  alone: breaks it\n  quiet: is fast\n  full(why): left out\n  sample(n): some\n",
        encoding="utf-8",
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/flaky.toml").write_text("# None so far.\n", encoding="utf-8")
    return Checkout(tmp_path)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1]


def test_a_test_that_passes_when_it_is_run_once_more_is_flaky_and_the_run_goes_on(checkout: Checkout) -> None:
    checkout.write("one.py", PASSING, FLAKY.format(name="race"))
    checkout.write("two.py", PASSING)

    done = checkout.run("test", "one", "two")

    assert (done.returncode, last_line(done)) == (0, "3 passed, 0 failed")
    assert "\nflaky: one.py::test_race\n" in done.stdout
    [folder] = (checkout.root / "build/flaky").iterdir()
    assert "assert not True" in (folder / "first.log").read_text()
    assert "race runs" in (folder / "second.log").read_text()
    assert "= 1 passed" in (folder / "second.log").read_text(), "it was not alone"
    assert checkout.summary("run")["flaky"] == [
        {"test": "one.py::test_race", "logs": f"build/flaky/{folder.name}"}
    ]
    assert [line.split()[0::2] for line in (checkout.root / "build/stages").read_text().splitlines()] == [
        ["one", "0"],
        ["two", "0"],
    ]


def test_a_test_that_fails_twice_is_red_and_the_last_target_is_its_own(checkout: Checkout) -> None:
    checkout.write("one.py", PASSING, ALWAYS)
    checkout.write("two.py", PASSING)

    done = checkout.run("test", "one", "two")

    assert (done.returncode, last_line(done)) == (1, "1 passed, 1 failed")
    assert "\nfailed: one.py::test_bad\n" in done.stdout
    assert checkout.logs("failed") == ["first.log", "second.log"]
    assert "make two" not in done.stdout


def test_three_flaky_tests_in_a_run_are_red(checkout: Checkout) -> None:
    checkout.write("one.py", PASSING, FLAKY.format(name="a"), FLAKY.format(name="b"))
    checkout.write("two.py", FLAKY.format(name="c"))

    done = checkout.run("test", "one", "two")

    assert (done.returncode, last_line(done)) == (1, "1 passed, 3 failed")
    assert done.stdout.count("\nflaky: ") == 3
    assert checkout.logs("flaky") == ["first.log"] * 3 + ["second.log"] * 3


def test_a_test_that_is_flaky_in_two_stages_has_the_logs_of_both(checkout: Checkout) -> None:
    checkout.write("one.py", EACH_TIME)

    done = checkout.run("test", "one", "first")

    assert (done.returncode, done.stderr) == (0, "")
    assert checkout.logs("flaky") == ["first.log"] * 2 + ["second.log"] * 2


def test_tests_whose_fixture_failed_are_run_together_once_more_and_count_as_one(checkout: Checkout) -> None:
    checkout.write("one.py", OF_A_FIXTURE, FLAKY.format(name="a"))

    done = checkout.run("test", "one")

    assert (done.returncode, last_line(done)) == (0, "4 passed, 0 failed")
    assert done.stdout.count("\nflaky: ") == 4
    seconds = [file.read_text() for file in checkout.root.glob("build/flaky/*in_place*/second.log")]
    assert ["= 3 passed" in text for text in seconds] == [True] * 3


def test_a_test_that_was_flaky_before_gets_no_second_chance(checkout: Checkout) -> None:
    checkout.write("one.py", FLAKY.format(name="race"))
    (checkout.root / "tests/flaky.toml").write_text(
        '[[flaky]]\ntest = "one.py::test_race"\nseen = 2026-11-27\ncause = "the tide"\n', encoding="utf-8"
    )

    done = checkout.run("test", "one")

    assert (done.returncode, last_line(done)) == (1, "0 passed, 1 failed")
    assert "\n==> no second chance: one.py::test_race was flaky on 2026-11-27: the tide\n" in done.stdout
    assert not checkout.was_run_again()


TIERED = """
@pytest.mark.full("test_good proves it")
def test_long(): pass
@pytest.mark.sample(2)
@pytest.mark.parametrize("place", range(7))
def test_places(place): pass
"""


def test_the_merge_tier_has_a_sample_and_not_what_is_for_the_full_tier(checkout: Checkout) -> None:
    checkout.write("cases/test_a.py", PASSING, TIERED)

    merged = checkout.run("test", "--tier", "merge", "layer", WORKERS="2")
    everything = checkout.run("test", "layer", WORKERS="2")

    assert (last_line(merged), last_line(everything)) == ("3 passed, 0 failed", "9 passed, 0 failed")
    assert "\ntier: merge, drawn by TEST_RUN_SEED=unknown\n" in merged.stdout


def test_a_test_of_a_tier_that_failed_is_run_once_more_whatever_its_mark(checkout: Checkout) -> None:
    race = FLAKY.format(name="race")
    checkout.write("cases/test_a.py", PASSING, "@pytest.mark.sample(1)", race)

    done = checkout.run("test", "--tier", "merge", "layer", WORKERS="1")

    assert (done.returncode, last_line(done)) == (0, "2 passed, 0 failed")


def test_after_a_green_merge_tier_a_run_goes_on_with_a_slice_of_the_rest(checkout: Checkout) -> None:
    checkout.write("cases/test_a.py", PASSING)
    checkout.write("left/test_b.py", PASSING)
    without = checkout.run("test", "--tier", "merge", "--slice", "layer", WORKERS="1")
    checkout.write("left/test_b.py", PASSING, '@pytest.mark.full("test_a")', FLAKY.format(name="race"))

    done = checkout.run("test", "--tier", "merge", "--slice", "layer", WORKERS="1")

    assert (without.returncode, last_line(without)) == (0, "1 passed, 0 failed")
    assert (done.returncode, last_line(done)) == (0, "2 passed, 0 failed")
    assert "\n==> make rest, tier rest 1/4, TEST_RUN_SEED=unknown\n" in done.stdout
    assert "\nflaky: left/test_b.py::test_race\n" in done.stdout


def test_a_full_run_is_noted_with_the_time_of_each_longer_test_if_it_is_green(checkout: Checkout) -> None:
    checkout.write("one.py", ALWAYS)
    assert checkout.run("test", "--keep", "one").returncode == 1
    assert not (checkout.root / "tests/lastfull.json").exists()
    checkout.write("one.py", PASSING)

    assert checkout.run("test", "--keep", "one").returncode == 0

    kept = json.loads((checkout.root / "tests/lastfull.json").read_text())
    assert (kept["commit"], kept["seconds"]) == ("unknown", {})


@pytest.mark.parametrize(
    ("target", "tests", "said", "failed"),
    [
        # pytest ends in the midst of a test, with 0.
        ("one", "def test_end(): os._exit(0)\n", "pytest one.py was killed or crashed", 2),
        ("one", "def test_stop(): raise KeyboardInterrupt\n", STOPPED, 2),
        ("one", "import nowhere\n", "pytest one.py: can't collect one.py", 1),
        # By -x.
        ("first", PASSING, STOPPED, 2),
        ("two", "", "two ended with exit code 2", 1),
        ("other", "", "other ended with exit code 2", 1),
    ],
    ids=["ended", "interrupted", "collection error", "stopped by -x", "no tests", "no pytest"],
)
def test_a_problem_outside_of_tests_is_red_and_nothing_is_run_again(
    checkout: Checkout, target: str, tests: str, said: str, failed: int
) -> None:
    checkout.write("one.py", FLAKY.format(name="race"), tests)
    checkout.write("two.py")

    done = checkout.run("test", target)

    assert (done.returncode, last_line(done)) == (1, f"0 passed, {failed} failed")
    assert f"\nred: {said}\n" in done.stdout
    assert not checkout.was_run_again()


PARTS = """
def note(what, where="PYTEST_XDIST_WORKER"):
    with open("notes", "a") as notes: print(what, os.environ.get(where, "none"), file=notes)
def test_together(): note("together")
@pytest.mark.alone
def test_by_itself(): note("on cluster", "MPIRT_TEST_CLUSTER")
@pytest.mark.quiet
def test_is_fast(): note("in quiet")
"""


def test_a_layer_runs_all_parts_and_a_failure_in_any_of_them_once_more(checkout: Checkout) -> None:
    checkout.write("cases/test_a.py", PARTS, FLAKY.format(name="race"))
    checkout.write("cases/test_b.py", PARTS, "@pytest.mark.alone", FLAKY.format(name="fault"))

    done = checkout.run("test", "layer", WORKERS="2")

    assert (done.returncode, last_line(done)) == (0, "8 passed, 0 failed")
    notes = (checkout.root / "notes").read_text().splitlines()
    both = ["on cluster 2", "on cluster 2", "together gw0", "together gw1"]
    assert [sorted(notes[:4]), notes[4:]] == [both, ["in quiet none"] * 2]
    assert "\nflaky: cases/test_a.py::test_race\n" in done.stdout
    assert "\nflaky: cases/test_b.py::test_fault\n" in done.stdout


def test_tests_that_break_their_cluster_have_their_own_in_one_process_each_too(checkout: Checkout) -> None:
    checkout.write("cases/test_a.py", PARTS)

    done = checkout.run("layer", "cases", "-n0")

    assert (done.returncode, last_line(done)) == (0, "3 passed, 0 failed")
    notes = (checkout.root / "notes").read_text().splitlines()
    assert sorted(notes) == ["in quiet none", "on cluster 2", "together none"]


def test_the_parts_run_in_turn_on_a_cluster_of_the_user(checkout: Checkout) -> None:
    checkout.write("cases/test_a.py", PARTS)

    done = checkout.run("test", "layer", WORKERS="1", MPIRT_TEST_KUBECONFIG="theirs")

    assert (done.returncode, last_line(done)) == (0, "3 passed, 0 failed")
    notes = (checkout.root / "notes").read_text().splitlines()
    assert notes == ["together gw0", "on cluster none", "in quiet none"]


def test_another_folder_runs_before_what_is_quiet_and_its_failures_count(checkout: Checkout) -> None:
    checkout.write("cases/test_a.py", PARTS)
    checkout.write("others/test_b.py", PARTS, FLAKY.format(name="race"))

    done = checkout.run("test", "both")

    assert (done.returncode, last_line(done)) == (0, "7 passed, 0 failed")
    # Two processes share the other folder, and either may have a file.
    notes = re.sub(r"\bgw\d\b", "gw", (checkout.root / "notes").read_text()).splitlines()
    meanwhile = ["in quiet gw", "on cluster 2", "on cluster none", "together gw", "together gw"]
    assert [sorted(notes[:-1]), notes[-1]] == [meanwhile, "in quiet none"]
    assert "\nflaky: others/test_b.py::test_race\n" in done.stdout


def test_another_folder_whose_run_breaks_off_is_red(checkout: Checkout) -> None:
    checkout.write("cases/test_a.py", PASSING)
    checkout.write("others/test_b.py", "def test_end(): os._exit(1)\n")

    done = checkout.run("test", "both")

    assert done.returncode == 1
    assert "\nred: pytest others: a worker crashed in others/test_b.py::test_end\n" in done.stdout


def test_a_layer_by_itself_gives_no_second_chances_and_takes_words_for_pytest(checkout: Checkout) -> None:
    checkout.write("cases/test_a.py", PASSING, FLAKY.format(name="race"), FLAKY.format(name="other"))

    done = checkout.run("layer", "cases", "-n0", "-k", "race or good")

    assert (done.returncode, last_line(done)) == (1, "1 passed, 1 failed")
    assert checkout.logs("cases/failed") == ["first.log"]


def test_a_worker_that_crashes_is_red_and_nothing_is_run_again(checkout: Checkout) -> None:
    checkout.write("cases/test_a.py", "def test_end(): os._exit(1)\n")
    checkout.write("cases/test_b.py", FLAKY.format(name="race"))

    done = checkout.run("test", "layer", WORKERS="1")

    assert done.returncode == 1
    assert "\nred: pytest cases, side by side: a worker crashed in cases/test_a.py::test_end\n" in done.stdout
    assert not checkout.was_run_again()


def test_a_soak_goes_on_after_failures_and_says_what_failed_how_often(checkout: Checkout) -> None:
    checkout.write("one.py", PASSING, FLAKY.format(name="race"))
    checkout.write("two.py", ALWAYS)

    done = checkout.run("soak", "--times", "2", "one", "two")

    assert (done.returncode, last_line(done)) == (1, "3 passed, 3 failed")
    assert "\n   2 of 2  two.py::test_bad\n" in done.stdout
    assert "\n   1 of 2  one.py::test_race\n" in done.stdout
    assert "race runs" in (checkout.root / "build/soak/1/one.log").read_text()
    assert checkout.logs("soak/1/failed") == ["first.log"] * 2
    assert [each["times"] for each in checkout.summary("soak")["failures"]] == [2, 1]
    green = checkout.run("soak", "--times", "1", "one")
    assert (green.returncode, last_line(green)) == (0, "2 passed, 0 failed")
