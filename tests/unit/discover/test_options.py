"""The command line and the variables."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mpirt.discover.options import (
    Options,
    Selection,
    by_job,
    by_own_labels,
    by_selector,
    by_stateful_set,
    read_options,
    wants_text,
)
from mpirt.errors import UsageError
from mpirt.hosts import Form
from tests.unit.discover.pods import WORKERS, owned, pod

NOTHING: Mapping[str, str] = {}


def read(*words: str, environ: Mapping[str, str] = NOTHING) -> Options:
    return read_options(words, environ)


def complaint(*words: str, environ: Mapping[str, str] = NOTHING) -> str:
    with pytest.raises(UsageError) as caught:
        read_options(words, environ)
    return str(caught.value)


def test_without_a_word_everything_has_a_default() -> None:
    assert read() == Options(
        selection=None, namespace="", slots=None, form=Form.HOROVOD, revision="", wait=0, seconds=4.0,
        wait_seconds=600.0, first_seconds=60.0, verbose=False,
    )  # fmt: skip


class TestTheJob:
    def test_is_named_in_one_of_three_ways(self) -> None:
        assert read("--job", "train").selection == by_job("train", origin="--job")
        assert read("--statefulset=w").selection == by_stateful_set("w", origin="--statefulset")
        assert read("-l", "app=w").selection == by_selector("app=w", origin="--selector")

    def test_may_be_named_by_a_variable(self) -> None:
        assert read(environ={"MPIRT_JOB": "train"}).selection == by_job("train", origin="MPIRT_JOB")
        assert read(environ={"MPIRT_STATEFULSET": "w"}).selection == by_stateful_set(
            "w", origin="MPIRT_STATEFULSET"
        )
        assert read(environ={"MPIRT_SELECTOR": "a"}).selection == by_selector("a", origin="MPIRT_SELECTOR")

    def test_on_the_command_line_counts(self) -> None:
        environ = {"MPIRT_JOB": "a", "MPIRT_SELECTOR": "b"}

        assert read("--job=c", environ=environ).selection == by_job("c", origin="--job")

    def test_is_one(self) -> None:
        assert complaint("--job=a", "--selector=b") == (
            "--job and --selector are given: which job is meant? Choose one of them"
        )
        assert complaint(environ={"MPIRT_JOB": "a", "MPIRT_STATEFULSET": "b"}) == (
            "MPIRT_JOB and MPIRT_STATEFULSET are set: which job is meant? Choose one of them"
        )


class TestTimes:
    def test_of_one_answer(self) -> None:
        assert read("--timeout", "0.5").seconds == 0.5
        assert read("--timeout=3s").seconds == 3.0
        assert read(environ={"MPIRT_DISCOVER_TIMEOUT": "9"}).seconds == 9.0

    def test_of_waiting(self) -> None:
        found = read("--wait", "3", "--timeout", "90", environ={"MPIRT_DISCOVER_TIMEOUT": "9"})

        assert (found.wait, found.wait_seconds, found.seconds) == (3, 90.0, 9.0)

    def test_of_the_first_answer(self) -> None:
        assert read(environ={"MPIRT_DISCOVER_FIRST_TIMEOUT": "300"}).first_seconds == 300.0
        assert read(environ={"MPIRT_DISCOVER_FIRST_TIMEOUT": "0"}).first_seconds == 0.0

    @pytest.mark.parametrize("text", ["0", "-1", "soon", "nan", "inf", "1e9"])
    def test_must_be_some(self, text: str) -> None:
        assert complaint(f"--timeout={text}").startswith(
            f"--timeout '{text}': expected a number of seconds above 0"
        )
        assert complaint(environ={"MPIRT_DISCOVER_TIMEOUT": text}).startswith("MPIRT_DISCOVER_TIMEOUT ")


def test_all_the_rest_is_taken() -> None:
    found = read("--slots=4", "--format", "hydra", "--revision=w-1", "-n", "ml", "-v")

    assert (found.slots, found.form, found.revision) == (4, Form.HYDRA, "w-1")
    assert (found.namespace, found.verbose) == ("ml", True)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--slots=0"], "--slots 0: must be at least 1"),
        (["--slots=two"], "--slots: must be a whole number of at most nine digits, got 'two'"),
        (["--wait=0"], "--wait 0: expected the number of workers to wait for, at least 1"),
        (["--wait=all"], "--wait: must be a whole number of at most nine digits, got 'all'"),
        (["--format=yaml"], "--format 'yaml': expected horovod, hostfile, hydra, json"),
        (["--job"], "--job needs a value, as in: --job VALUE"),
        (["--job="], "--job needs a value, as in: --job VALUE"),
        (["-v", "--verbose"], "--verbose is given twice"),
        (["--verbose=yes"], "'--verbose=yes' is not an option of mpirt-discover; see --help"),
        (["train"], "'train' is not an option of mpirt-discover; see --help"),
    ],
)
def test_what_makes_no_sense_is_named(words: list[str], text: str) -> None:
    assert complaint(*words) == text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-h"], "--help"),
        (["--job", "x", "--help"], "--help"),
        (["--version"], "--version"),
        (["-v"], ""),
        ([], ""),
    ],
)
def test_help_and_version_are_asked_for_anywhere(words: list[str], text: str) -> None:
    assert wants_text(words) == text


class TestAJob:
    def test_is_asked_for_by_the_label_of_each_controller(self) -> None:
        assert by_job("train", origin="--job") == Selection(
            "--job train",
            ("mpirt.dev/job=train", "training.kubeflow.org/job-name=train", "mpi-job-name=train"),
        )

    def test_holds_whatever_has_its_label(self) -> None:
        assert by_job("train", origin="--job").holds(owned("x", None))

    @pytest.mark.parametrize("name", ["", "a,b", "a=b", "a b", "a" * 64, "ä"])
    def test_has_a_name_that_changes_no_selector(self, name: str) -> None:
        with pytest.raises(UsageError, match=r"MPIRT_JOB .*expected a name"):
            by_job(name, origin="MPIRT_JOB")


class TestAStatefulSet:
    def test_is_asked_for_by_the_label_that_all_of_its_pods_have(self) -> None:
        found = by_stateful_set("w", origin="--statefulset")

        assert found == Selection("--statefulset w", ("statefulset.kubernetes.io/pod-name",), stateful_set="w")

    def test_holds_what_it_controls(self) -> None:
        found = by_stateful_set("w", origin="--statefulset")

        assert found.holds(pod("w-0"))
        assert not found.holds(owned("v-0", {**WORKERS, "name": "v"}))
        assert not found.holds(owned("w-0", {**WORKERS, "kind": "ReplicaSet"}))
        assert not found.holds(owned("w-1", None))


class TestASelector:
    def test_is_passed_on(self) -> None:
        assert by_selector(" app in (a, b) ", origin="-l").selectors == ("app in (a, b)",)

    def test_must_not_be_empty(self) -> None:
        with pytest.raises(UsageError, match="MPIRT_SELECTOR is empty"):
            by_selector(" ", origin="MPIRT_SELECTOR")


class TestALaunchersOwnLabels:
    @pytest.mark.parametrize("label", ["mpirt.dev/job", "training.kubeflow.org/job-name", "mpi-job-name"])
    def test_name_the_job_and_who_labels_it(self, label: str) -> None:
        found = by_own_labels({"app": "x", label: "train"}, origin="pod launch")

        assert found == Selection(f"pod launch: {label} train", (f"{label}=train",))

    def test_may_name_none(self) -> None:
        assert by_own_labels({"app": "x"}, origin="pod launch") is None
