""".ci/run: whatever happens, the cluster is removed and the time of every stage is printed."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.unit.commands import Checkout

PASSING = """test "$1" != ci || {
    mkdir -p build/run
    echo "check 31 0" > build/stages
    echo "7 passed, 0 failed" | tee build/run/closing
}"""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout.make(tmp_path / "checkout")
    made.stub(".venv/bin/python")
    made.stub("make", PASSING)
    return made


def table(text: str) -> list[list[str]]:
    """The rows of the closing table without its times."""
    rows = [row.split() for row in text[text.index("stage ") :].splitlines()[1:]]
    return [[name, code] for name, _, code, *_ in rows if not name.isdigit()]


def test_a_run_that_passes_shows_how_long_each_stage_took_and_ends_with_the_tests_own_last_line(
    checkout: Checkout,
) -> None:
    done = checkout.run(".ci/run")

    assert (done.returncode, done.stderr) == (0, "")
    assert checkout.calls() == ["make ci", "make cluster-down"]
    assert done.stdout.splitlines()[-1] == "7 passed, 0 failed"
    assert "\ncheck                31  0\n" in done.stdout
    assert table(done.stdout) == [["check", "0"], ["cluster-down", "0"], ["all", "0"]]


def test_a_run_that_fails_keeps_its_code_and_removes_the_cluster(checkout: Checkout) -> None:
    checkout.stub("make", f'{PASSING}; test "$1" != ci || exit 2')

    done = checkout.run(".ci/run")

    assert done.returncode == 2
    assert checkout.calls() == ["make ci", "make cluster-down"]
    assert table(done.stdout)[-1] == ["all", "2"]


def test_a_cluster_that_can_not_be_removed_is_a_failure(checkout: Checkout) -> None:
    checkout.stub("make", f'{PASSING}; test "$1" = ci || exit 3')

    done = checkout.run(".ci/run")

    assert done.returncode == 3
    assert table(done.stdout) == [["check", "0"], ["cluster-down", "3"], ["all", "3"]]


def test_the_cluster_of_a_kubeconfig_is_not_removed(checkout: Checkout) -> None:
    done = checkout.run(".ci/run", MPIRT_TEST_KUBECONFIG="config")

    assert done.returncode == 0
    assert checkout.calls() == ["make ci"]


def test_a_run_that_broke_before_there_was_an_environment_has_no_cluster_to_remove(checkout: Checkout) -> None:
    (checkout.root / ".venv/bin/python").unlink()
    checkout.stub("make", "exit 2")

    done = checkout.run(".ci/run")

    assert done.returncode == 2
    assert checkout.calls() == ["make ci"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)], ids=str
)
def test_a_cancelled_run_ends_its_tests_and_removes_the_cluster(
    number: signal.Signals, code: int, checkout: Checkout
) -> None:
    # What make started is two processes away from .ci/run and says when it runs.
    checkout.stub("make", 'test "$1" != ci || sh -c "echo begun; sleep 600; :"')
    run = subprocess.Popen(
        [checkout.root / ".ci/run"],
        env=checkout.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "begun\n"

    run.send_signal(number)
    # The pipe ends when the last process that could write into it has ended.
    rest = run.communicate()[0]

    assert run.returncode == code
    assert checkout.calls() == ["make ci", "make cluster-down"]
    assert table(rest)[-1] == ["all", str(code)]
