"""The Makefile: what each target starts, in which order, and what is said when it can't."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.commands import Checkout

AS_ROOT = 'echo 0; test "$1" = -u'
AS_SOMEBODY = 'echo 1000; test "$1" = -u'


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout whose .venv is there and up to date, its programs stubs."""
    made = Checkout.make(tmp_path / "checkout")
    for name in ("python", "ruff", "mypy", "coverage"):
        made.stub(f".venv/bin/{name}")
    made.stub("id", AS_ROOT)
    made.stub("apt-get")
    for folder in ("unit", "protocol", "api", "e2e"):
        (made.root / "tests" / folder).mkdir(parents=True)
    (made.root / ".venv" / ".ready").touch()
    return made


# Each test is in one of them, and in one only.
AT_ONCE = [
    "coverage run -m pytest tests/unit --ignore=tests/unit/rsh/test_wrapper_in_shells.py",
    "mypy ",
    "python -m pytest tests/protocol --ignore=tests/protocol/controller --ignore=tests/protocol/discover",
    "python -m pytest tests/protocol/controller --ignore=tests/protocol/controller/test_lease.py",
    "python -m pytest tests/protocol/controller/test_lease.py tests/unit/rsh/test_wrapper_in_shells.py",
    "python -m pytest tests/protocol/discover --ignore=tests/protocol/discover/test_faults.py",
    "python -m pytest tests/protocol/discover/test_faults.py",
]
CHECK = ["ruff check .", "ruff format --check .", *AT_ONCE, "coverage report"]
CLUSTER = ["python -m tests.kube up", "python -m tests.kube images"]
API = ["python -m pytest tests/api -n 4"]
E2E = ["python -m pytest tests/e2e"]
ROOT_CHECK = ["id -u"]


def in_order(calls: list[str]) -> list[str]:
    """The calls, those that are started at once in the order of CHECK."""
    if "coverage report" in calls:
        place = calls.index("coverage report")
        begin = place - len(AT_ONCE)
        calls[begin:place] = sorted(calls[begin:place])
    return calls


class TestWhatIsStarted:
    def test_everything(self, checkout: Checkout) -> None:
        done = checkout.run("make", "test")

        assert (done.returncode, done.stderr) == (0, "")
        assert in_order(checkout.calls()) == ROOT_CHECK + CHECK + CLUSTER + API + E2E

    def test_everything_on_somebody_elses_cluster_needs_no_root_and_starts_none(self, checkout: Checkout) -> None:
        checkout.stub("id", AS_SOMEBODY)
        (checkout.root / "config").touch()

        done = checkout.run("make", "test", MPIRT_TEST_KUBECONFIG="config")

        assert (done.returncode, done.stderr) == (0, "")
        assert in_order(checkout.calls()) == CHECK + E2E

    def test_the_checks(self, checkout: Checkout) -> None:
        checkout.run("make", "check")

        assert in_order(checkout.calls()) == CHECK

    @pytest.mark.parametrize("program", ["coverage", "python", "mypy"])
    def test_of_what_runs_at_once_each_can_fail(self, checkout: Checkout, program: str) -> None:
        checkout.stub(f".venv/bin/{program}", "echo something is wrong; exit 3")

        done = checkout.run("make", "check")

        assert done.returncode == 2
        assert "something is wrong" in done.stdout

    def test_words_for_pytest_are_passed_on(self, checkout: Checkout) -> None:
        checkout.run("make", "e2e", "PYTEST_ARGS=-k mpirun -x")

        assert checkout.calls() == ["python -m pytest tests/e2e -k mpirun -x"]

    def test_the_demo_is_told_what_make_was_told(self, checkout: Checkout) -> None:
        checkout.stub(".venv/bin/python", f"echo $CLUSTER $REGISTRY >> {checkout.root}/calls")

        checkout.run("make", "demo", "CLUSTER=current", "REGISTRY=reg/mpirt")

        assert checkout.calls() == ["python -m demo", "current reg/mpirt"]

    def test_a_cluster_is_removed_even_when_the_environment_is_out_of_date(self, checkout: Checkout) -> None:
        os.utime(checkout.root / ".venv" / ".ready", (0, 0))

        checkout.run("make", "cluster-down")

        assert checkout.calls() == ["python -m tests.kube down"]

    def test_no_words_list_the_targets_and_start_nothing(self, checkout: Checkout) -> None:
        done = checkout.run("make")

        assert done.returncode == 0
        assert "make cluster-down " in done.stdout
        assert checkout.calls() == []


class TestTheEnvironment:
    def test_it_is_made_again_when_the_project_file_changed(self, checkout: Checkout) -> None:
        os.utime(checkout.root / ".venv" / ".ready", (0, 0))
        checkout.stub("python3")

        done = checkout.run("make", "venv", "PYTHON=python3")

        assert (done.returncode, done.stderr) == (0, "")
        assert [call for call in checkout.calls() if "ensurepip" not in call] == [
            "python3 -m venv .venv",
            "python -m pip install --quiet --disable-pip-version-check --upgrade pip",
            "python -m pip install --quiet --editable .[controller] --group dev",
        ]

    def test_it_is_left_alone_otherwise(self, checkout: Checkout) -> None:
        checkout.run("make", "venv")
        checkout.run("make", "venv")

        assert checkout.calls() == []

    def test_an_installation_that_failed_is_tried_again(self, checkout: Checkout) -> None:
        (checkout.root / ".venv" / ".ready").unlink()
        checkout.stub("python3")
        checkout.stub(".venv/bin/python", "exit 7")

        first = checkout.run("make", "venv", "PYTHON=python3")
        second = checkout.run("make", "-q", "venv", "PYTHON=python3")

        assert first.returncode == 2
        assert second.returncode == 1, "make -q says 1 for: there is work to do"


class TestWhenItCannot:
    def test_a_cluster_without_root_is_refused_before_anything_is_done(self, checkout: Checkout) -> None:
        checkout.stub("id", AS_SOMEBODY)

        done = checkout.run("make", "test")

        assert done.returncode == 2
        assert (
            "needs root: run it as root on a throwaway Debian machine, or set MPIRT_TEST_KUBECONFIG" in done.stderr
        )
        assert "make check" in done.stderr
        assert checkout.calls() == ["id -u"]
        assert not (checkout.root / "build").exists()

    def test_a_kubeconfig_that_is_not_there_is_refused_before_anything_is_done(self, checkout: Checkout) -> None:
        done = checkout.run("make", "test", MPIRT_TEST_KUBECONFIG="/nowhere/config")

        assert done.returncode == 2
        assert "MPIRT_TEST_KUBECONFIG names a file that can't be read: /nowhere/config" in done.stderr
        assert checkout.calls() == []

    def test_a_python_that_cannot_make_environments_is_named_with_its_remedy(self, checkout: Checkout) -> None:
        (checkout.root / ".venv" / ".ready").unlink()

        done = checkout.run("make", "venv", "PYTHON=/bin/false")

        assert done.returncode == 2
        assert "/bin/false can't make .venv; as root: apt-get install python3-venv" in done.stderr
        assert checkout.calls() == []

    def test_root_gets_what_is_missing_installed(self, checkout: Checkout) -> None:
        checkout.stub("python3", f"test -e {checkout.root}/installed")
        checkout.stub("apt-get", f"test $2 = update || touch {checkout.root}/installed")

        done = checkout.run("make", "system", "PYTHON=python3")

        assert done.returncode == 0
        assert [call for call in checkout.calls() if call.startswith("apt-get")] == [
            "apt-get -q update",
            "apt-get -q install -y --no-install-recommends python3 python3-venv ca-certificates busybox-static",
        ]

    def test_root_gets_the_shell_that_is_missing_installed(self, checkout: Checkout) -> None:
        shell = checkout.root / "shell"
        checkout.stub("apt-get", f"test $2 = update || install -m 755 /bin/true {shell}")

        done = checkout.run("make", "system", "PYTHON=/usr/bin/python3", f"BUSYBOX={shell}")

        assert done.returncode == 0
        assert any("busybox-static" in call for call in checkout.calls())

    def test_somebody_else_is_told_which_shell_to_install(self, checkout: Checkout) -> None:
        checkout.stub("id", AS_SOMEBODY)

        done = checkout.run("make", "system", "PYTHON=/usr/bin/python3", "BUSYBOX=no-such-shell")

        assert done.returncode == 2
        assert "the unit tests need busybox; as root: apt-get install busybox-static" in done.stderr

    def test_somebody_else_is_told_what_to_install(self, checkout: Checkout) -> None:
        checkout.stub("id", AS_SOMEBODY)

        done = checkout.run("make", "system", "PYTHON=/bin/false")

        assert done.returncode == 2
        assert "as root: apt-get install python3-venv" in done.stderr
        assert checkout.calls() == ["id -u"]

    @pytest.mark.parametrize(
        ("broken", "how", "stages"),
        [
            pytest.param("ruff", "exit 7", ["system", "venv", "check"], id="lint"),
            pytest.param("coverage", "exit 7", ["system", "venv", "check"], id="tests"),
            pytest.param("python", 'test "$3" != up', ["system", "venv", "check", "cluster"], id="cluster"),
        ],
    )
    def test_a_stage_that_fails_is_the_last_one(
        self, broken: str, how: str, stages: list[str], checkout: Checkout
    ) -> None:
        checkout.stub(f".venv/bin/{broken}", how)

        done = checkout.run("make", "test")
        noted = [
            line.split() for line in (checkout.root / "build/stages").read_text(encoding="utf-8").splitlines()
        ]

        assert done.returncode == 2
        assert [stage[0] for stage in noted] == stages
        assert [stage[2] for stage in noted] == ["0"] * (len(stages) - 1) + ["2"]
