"""The Makefile: what each target starts, in which order, and what is said when it can't."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpirt import agent, keeper
from tests.unit.commands import Checkout

AS_ROOT = 'echo 0; test "$1" = -u'
FOREIGN_MACHINE = "qemu-x86_64-static" if os.uname().machine == "s390x" else "qemu-s390x-static"
PROGRAMS = (
    "mpirt/agent/agent-1-amd64", "mpirt/agent/agent-1-arm64",
    *(f"mpirt/keeper/keeper-1-{one}" for one in ("amd64", "arm64", "ppc64le", "riscv64", "s390x")),
)  # fmt: skip
BUSYBOX_REMEDY = "the tests need busybox; as root: apt-get install busybox-static"
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
    made.stub(f"bin/{FOREIGN_MACHINE}")
    for name in (
        "images/build.py",
        "images/common/common.h",
        "images/agent/agent.c",
        "images/keeper/keeper.c",
        *PROGRAMS,
    ):
        (made.root / name).parent.mkdir(parents=True, exist_ok=True)
        (made.root / name).touch()
    return made


class TestWhatIsStarted:
    @pytest.mark.parametrize(
        ("words", "calls"),
        [
            pytest.param(
                ("test",),
                ["id -u", "python -m tests.run test --tier merge check neighbours cluster api-and-e2e"],
                id="everything of the merge tier",
            ),
            pytest.param(
                ("test-full",),
                ["id -u", "python -m tests.run test --keep check neighbours cluster api-and-e2e oldest"],
                id="everything, which is kept, on the oldest Kubernetes too",
            ),
            pytest.param(
                ("ci",),
                ["id -u", "python -m tests.run test --tier merge --slice check neighbours cluster api-and-e2e"],
                id="with a slice of the full tier",
            ),
            pytest.param(
                ("soak", "N=2"),
                ["id -u", "python -m tests.run soak --tier merge --times 2 check neighbours cluster api-and-e2e"],
                id="everything several times",
            ),
            pytest.param(
                ("rest",),
                [
                    "python -m pytest -p tests.run.selection -n2 --dist=loadfile tests/unit tests/protocol",
                    "python -m tests.run layer --at-once 1 --beside tests/api tests/e2e",
                ],
                id="a slice of every layer, first those without a cluster, with nothing beside them",
            ),
            pytest.param(
                ("cluster",),
                ["python -m testbed.kube up", "python -m testbed.kube images"],
                id="the cluster and its images",
            ),
            pytest.param(
                ("e2e", "PYTEST_ARGS=-k mpirun -x"),
                ["python -m tests.run layer tests/e2e -k mpirun -x"],
                id="a layer, with words for pytest",
            ),
        ],
    )
    def test_a_target_starts_these_programs(
        self, checkout: Checkout, words: tuple[str, ...], calls: list[str]
    ) -> None:
        done = checkout.run("make", *words)

        assert (done.returncode, done.stderr, checkout.calls()) == (0, "", calls)

    @pytest.mark.parametrize(
        ("asked", "tier"), [({}, "merge"), ({"TEST_RUN_TIER": ""}, ""), ({"TEST_RUN_TIER": "merge"}, "merge")]
    )
    def test_the_checks_are_those_of_the_merge_tier_unless_the_run_wants_all(
        self, checkout: Checkout, asked: dict[str, str], tier: str
    ) -> None:
        checkout.stub(".venv/bin/coverage", 'echo "tier: $TEST_RUN_TIER."')

        assert f"tier: {tier}." in checkout.run("make", "check", **asked).stdout.splitlines()

    def test_the_oldest_kubernetes_replaces_the_one_that_runs(self, checkout: Checkout) -> None:
        for minor in ("1.36", "1.34"):
            (checkout.root / "testbed/kube/modules" / f"kubernetes-{minor}").mkdir(parents=True)
        checkout.stub(".venv/bin/python", 'echo "$MPIRT_TEST_KUBERNETES"')

        done = checkout.run("make", "oldest")

        assert [line for line in done.stdout.splitlines() if line[0].isdigit()] == ["1.34"] * 3
        assert checkout.calls() == [
            "python -m testbed.kube up",
            "python -m testbed.kube images",
            "python -m tests.run layer tests/e2e -m oldest",
        ]

    def test_everything_on_somebody_elses_cluster_needs_no_root_and_starts_none(self, checkout: Checkout) -> None:
        checkout.stub("id", AS_SOMEBODY)
        (checkout.root / "config").touch()

        done = checkout.run("make", "test", MPIRT_TEST_KUBECONFIG="config")

        assert (done.returncode, done.stderr) == (0, "")
        assert checkout.calls() == ["python -m tests.run test --tier merge check e2e"]

    def test_a_red_run_is_a_failure(self, checkout: Checkout) -> None:
        checkout.stub(".venv/bin/python", "exit 1")

        assert checkout.run("make", "test").returncode == 2

    @pytest.mark.parametrize("program", ["ruff", "coverage", "python", "mypy"])
    def test_each_part_of_the_checks_can_fail(self, checkout: Checkout, program: str) -> None:
        checkout.stub(f".venv/bin/{program}", "echo something is wrong; exit 3")

        done = checkout.run("make", "check")

        assert done.returncode == 2
        assert "something is wrong" in done.stdout

    def test_a_cluster_is_removed_even_when_the_environment_is_out_of_date(self, checkout: Checkout) -> None:
        os.utime(checkout.root / ".venv" / ".ready", (0, 0))

        checkout.run("make", "cluster-down")

        assert checkout.calls() == ["python -m testbed.kube down"] * 2

    def test_no_words_list_the_targets_and_start_nothing(self, checkout: Checkout) -> None:
        done = checkout.run("make")

        assert done.returncode == 0
        assert "make cluster-down " in done.stdout
        assert checkout.calls() == []


class TestTheEnvironment:
    def test_the_environment_is_made_again_when_the_project_file_changed(self, checkout: Checkout) -> None:
        os.utime(checkout.root / ".venv" / ".ready", (0, 0))
        checkout.stub("python3")

        done = checkout.run("make", "venv", "PYTHON=python3")

        assert (done.returncode, done.stderr) == (0, "")
        assert [call for call in checkout.calls() if "ensurepip" not in call] == [
            "python3 -m venv .venv",
            "python -m pip install --quiet --disable-pip-version-check --upgrade pip",
            "python -m pip install --quiet --editable .[controller] --group dev",
        ]

    def test_an_installation_that_failed_is_tried_again(self, checkout: Checkout) -> None:
        (checkout.root / ".venv" / ".ready").unlink()
        checkout.stub("python3")
        checkout.stub(".venv/bin/python", "exit 7")

        first = checkout.run("make", "venv", "PYTHON=python3")
        second = checkout.run("make", "-q", "venv", "PYTHON=python3")

        assert first.returncode == 2
        assert second.returncode == 1, "make -q says 1 for: there is work to do"


class TestAgentAndKeeper:
    BUILT = [  # noqa: RUF012  a literal
        "python images/build.py agent mpirt/agent amd64",
        "python images/build.py agent mpirt/agent arm64",
        *(
            f"python images/build.py keeper mpirt/keeper {one}"
            for one in ("amd64", "arm64", "ppc64le", "riscv64", "s390x")
        ),
    ]

    def test_programs_are_built_for_each_architecture(self, checkout: Checkout) -> None:
        for name in PROGRAMS:
            (checkout.root / name).unlink()

        done = checkout.run("make", "programs")

        assert (done.returncode, done.stderr) == (0, "")
        assert checkout.calls() == self.BUILT

    @pytest.mark.parametrize(
        ("source", "built"),
        [
            ("build.py", BUILT),
            ("agent/agent.c", BUILT[:2]),
            ("agent/new.h", BUILT[:2]),
            ("keeper/new.c", BUILT[2:]),
            ("common/watch.c", BUILT),
        ],
    )
    def test_a_program_is_built_again_when_a_source_of_it_is_newer(
        self, checkout: Checkout, source: str, built: list[str]
    ) -> None:
        for name in PROGRAMS:
            os.utime(checkout.root / name, (1, 1))
        for path in (checkout.root / "images").rglob("*.*"):
            os.utime(path, (0, 0))
        assert checkout.run("make", "-q", "programs").returncode == 0

        (checkout.root / "images" / source).touch()
        checkout.run("make", "programs")

        assert checkout.calls() == built

    @pytest.mark.parametrize(
        "target", ["check", "unit", "protocol", "api", "e2e", "api-and-e2e", "cluster", "demo"]
    )
    def test_targets_that_use_programs_build_them_first(self, checkout: Checkout, target: str) -> None:
        for name in PROGRAMS:
            (checkout.root / name).unlink()

        checkout.run("make", target)

        calls = [call for call in checkout.calls() if call.startswith("python")]
        assert calls[:7] == self.BUILT
        assert len(calls) > 7

    def test_their_names_are_those_under_which_mpirt_looks_for_them(self) -> None:
        agents = [f"mpirt/agent/{agent.file_name(one)}" for one in agent.ARCHITECTURES]
        keepers = [f"mpirt/keeper/{keeper.file_name(one)}" for one in keeper.ARCHITECTURES]

        assert (*agents, *keepers) == PROGRAMS

    def test_programs_are_removed_with_the_environment(self, checkout: Checkout) -> None:
        checkout.run("make", "clean")

        assert [name for name in (*PROGRAMS, ".venv") if (checkout.root / name).exists()] == []
        assert (checkout.root / "images/keeper/keeper.c").exists()


class TestWhenItCannot:
    @pytest.mark.parametrize(
        ("variables", "said", "calls"),
        [
            pytest.param(
                {},
                "needs root: run it as root on a throwaway Debian machine, or set MPIRT_TEST_KUBECONFIG",
                ["id -u"],
                id="without root",
            ),
            pytest.param(
                {"MPIRT_TEST_KUBECONFIG": "/nowhere/config"},
                "MPIRT_TEST_KUBECONFIG names a file that can't be read: /nowhere/config",
                [],
                id="with a kubeconfig that is not there",
            ),
        ],
    )
    def test_a_cluster_is_refused_before_anything_is_done(
        self, checkout: Checkout, variables: dict[str, str], said: str, calls: list[str]
    ) -> None:
        checkout.stub("id", AS_SOMEBODY)

        done = checkout.run("make", "test", **variables)

        assert (done.returncode, said in done.stderr, checkout.calls()) == (2, True, calls), done.stderr
        assert variables or "make check" in done.stderr
        assert not (checkout.root / "build").exists()

    def test_a_python_that_cannot_make_environments_is_named_with_its_remedy(self, checkout: Checkout) -> None:
        (checkout.root / ".venv" / ".ready").unlink()

        done = checkout.run("make", "venv", "PYTHON=/bin/false")

        assert done.returncode == 2
        assert "/bin/false can't make .venv; as root: apt-get install python3-venv" in done.stderr
        assert checkout.calls() == []

    @pytest.mark.parametrize(
        ("variable", "remedy"),
        [
            pytest.param("BUSYBOX=no-such-shell", BUSYBOX_REMEDY, id="busybox"),
            pytest.param(
                "QEMU=no-such-machine",
                "the tests need no-such-machine; as root: apt-get install qemu-user-static",
                id="the other architecture's machine",
            ),
        ],
    )
    def test_checks_without_a_program_say_how_to_install_it_and_start_nothing(
        self, checkout: Checkout, variable: str, remedy: str
    ) -> None:
        (checkout.root / ".venv" / ".ready").unlink()

        done = checkout.run("make", "check", variable)

        assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (2, "", remedy)
        assert checkout.calls() == []

    def test_root_gets_what_is_missing_installed(self, checkout: Checkout) -> None:
        checkout.stub("python3", f"test -e {checkout.root}/installed")
        checkout.stub("apt-get", f"test $2 = update || touch {checkout.root}/installed")

        done = checkout.run("make", "system", "PYTHON=python3")

        assert done.returncode == 0
        assert [call for call in checkout.calls() if call.startswith("apt-get")] == [
            "apt-get -q update",
            (
                "apt-get -q install -y --no-install-recommends "
                "python3 python3-venv ca-certificates busybox-static openssl qemu-user-static"
            ),
        ]

    @pytest.mark.parametrize(
        ("variable", "package"), [("BUSYBOX", "busybox-static"), ("QEMU", "qemu-user-static")]
    )
    def test_root_gets_one_program_that_is_missing_installed(
        self, checkout: Checkout, variable: str, package: str
    ) -> None:
        program = checkout.root / "program"
        checkout.stub("apt-get", f"test $2 = update || install -m 755 /bin/true {program}")

        done = checkout.run("make", "system", "PYTHON=/usr/bin/python3", f"{variable}={program}")

        assert done.returncode == 0
        assert any(package in call for call in checkout.calls())

    @pytest.mark.parametrize(
        ("variables", "remedy"),
        [
            pytest.param(("PYTHON=/usr/bin/python3", "BUSYBOX=no-such-shell"), BUSYBOX_REMEDY, id="a shell"),
            pytest.param(("PYTHON=/bin/false",), "as root: apt-get install python3-venv", id="Python"),
        ],
    )
    def test_a_user_without_root_is_told_what_to_install(
        self, checkout: Checkout, variables: tuple[str, ...], remedy: str
    ) -> None:
        checkout.stub("id", AS_SOMEBODY)

        done = checkout.run("make", "system", *variables)

        assert done.returncode == 2
        assert remedy in done.stderr
        assert checkout.calls() == ["id -u"]
