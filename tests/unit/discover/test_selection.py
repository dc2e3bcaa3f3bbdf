"""Which pods the API server is asked for, and which of its answer belong to the job."""

from __future__ import annotations

import pytest

from mpirt.discover.selection import Selection, by_job, by_own_labels, by_selector, by_stateful_set
from mpirt.errors import UsageError
from tests.unit.discover.pods import WORKERS, owned, pod


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
