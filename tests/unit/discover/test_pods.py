"""What is read of a pod, and the words for why it isn't Ready."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.discover.discovery import Container, Owner, read_pod
from mpirt.errors import PeerError
from tests.unit.discover.pods import body, condition, labelled, pod

NOT_READY = [condition("Ready", status="False"), condition("ContainersReady", status="False")]


def waiting(reason: str) -> dict[str, Any]:
    return {"name": "main", "ready": False, "state": {"waiting": {"reason": reason}}}


class TestAPod:
    def test_that_is_ready_waits_for_nothing(self) -> None:
        found = pod()

        assert (found.name, found.ready, found.waits_for) == ("w-0", True, "")
        assert (found.deleting, found.draining, found.disruption) == (False, False, "")

    def test_has_an_owner_that_controls_it(self) -> None:
        other = {"kind": "Node", "name": "n", "uid": "9"}
        mine = {"kind": "MPIJob", "name": "train", "uid": "2", "controller": True}

        found = pod(metadata={"ownerReferences": [other, mine]})

        assert found.owner == Owner("MPIJob", "train", "2")
        assert str(found.owner) == "MPIJob train"

    @pytest.mark.parametrize("references", [[], None, [{"kind": "Node", "name": "n", "uid": "9"}]])
    def test_may_belong_to_nobody(self, references: object) -> None:
        assert pod(metadata={"ownerReferences": references}).owner is None

    def test_is_being_deleted_from_the_moment_that_somebody_asks(self) -> None:
        assert pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}).deleting

    @pytest.mark.parametrize("text", ["true", "", "since noon"])
    def test_drains_when_it_is_marked(self, text: str) -> None:
        assert pod(metadata={"annotations": {"mpirt.dev/draining": text}}).draining

    def test_does_not_when_that_was_taken_back(self) -> None:
        assert not pod(metadata={"annotations": {"mpirt.dev/draining": "false"}}).draining

    @pytest.mark.parametrize(
        ("row", "why"),
        [
            (condition("DisruptionTarget", reason="EvictionByEvictionAPI"), "EvictionByEvictionAPI"),
            (condition("DisruptionTarget"), "unknown"),
            (condition("DisruptionTarget", status="False", reason="x"), ""),
        ],
    )
    def test_may_be_about_to_be_disrupted(self, row: dict[str, str], why: str) -> None:
        assert pod(conditions=[condition("Ready"), row]).disruption == why

    def test_without_a_name_is_none(self) -> None:
        with pytest.raises(PeerError, match="has no name"):
            read_pod({"metadata": {}})

    def test_of_which_nothing_else_is_known_is_not_ready(self) -> None:
        found = read_pod({"metadata": {"name": "w-0"}})

        assert (found.ready, found.waits_for) == (False, "no phase yet")
        assert found.container() == Container("", ())


class TestItsRole:
    @pytest.mark.parametrize(
        ("labels", "role"),
        [
            pytest.param({"mpirt.dev__role": "worker"}, "worker", id="ours"),
            pytest.param({"training.kubeflow.org__job_role": "launcher"}, "launcher", id="v2beta1"),
            pytest.param({"training.kubeflow.org__replica_type": "Launcher"}, "launcher", id="training-operator"),
            pytest.param({"mpi_job_role": "worker"}, "worker", id="v1"),
            pytest.param({"app": "worker"}, "", id="none"),
        ],
    )
    def test_is_what_its_labels_say(self, labels: dict[str, str], role: str) -> None:
        assert labelled(**labels).role == role


class TestItsContainer:
    TWO: tuple[dict[str, Any], ...] = (
        {"name": "side", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
        {"name": "main", "resources": {"limits": {"amd.com/gpu": "2", "x.org/gpu": 3, "cpu": "8", "gpu": "9"}}},
    )

    def test_is_the_first(self) -> None:
        assert pod(spec={"containers": list(self.TWO)}).container().name == "side"

    def test_is_the_one_that_the_annotation_names(self) -> None:
        annotations = {"kubectl.kubernetes.io/default-container": "main"}
        found = pod(spec={"containers": list(self.TWO)}, metadata={"annotations": annotations})

        assert found.container() == Container("main", (("amd.com/gpu", "2"), ("x.org/gpu", "3")))

    def test_is_the_one_that_was_asked_for(self) -> None:
        annotations = {"kubectl.kubernetes.io/default-container": "main"}
        wanted = body(spec={"containers": list(self.TWO)}, metadata={"annotations": annotations})

        assert read_pod(wanted).container("side").gpus == (("nvidia.com/gpu", "1"),)

    def test_is_the_first_where_there_is_none_by_that_name(self) -> None:
        wanted = body(spec={"containers": list(self.TWO)})

        assert read_pod(wanted).container("other").name == "side"


class TestWhyItIsNotReady:
    @pytest.mark.parametrize(
        ("status", "why"),
        [
            pytest.param(
                {
                    "phase": "Pending",
                    "conditions": [condition("PodScheduled", status="False", reason="Unschedulable")],
                },
                "Unschedulable",
                id="no node takes it",
            ),
            pytest.param(
                {"phase": "Pending", "conditions": [condition("PodScheduled", status="False")]},
                "not scheduled",
                id="no node yet",
            ),
            pytest.param(
                {"phase": "Pending", "conditions": [], "containerStatuses": [waiting("ImagePullBackOff")]},
                "ImagePullBackOff",
                id="no image",
            ),
            pytest.param(
                {
                    "phase": "Pending",
                    "conditions": [],
                    "initContainerStatuses": [waiting("CrashLoopBackOff")],
                    "containerStatuses": [waiting("PodInitializing")],
                },
                "CrashLoopBackOff",
                id="an init container fails",
            ),
            pytest.param(
                {"phase": "Pending", "conditions": [], "containerStatuses": [waiting("ContainerCreating")]},
                "ContainerCreating",
                id="on its way",
            ),
            pytest.param(
                {
                    "conditions": NOT_READY,
                    "containerStatuses": [{"ready": False, "state": {"terminated": {"reason": "OOMKilled"}}}],
                },
                "OOMKilled",
                id="its container has ended",
            ),
            pytest.param(
                {
                    "phase": "Pending",
                    "conditions": [],
                    "initContainerStatuses": [{"ready": True, "state": {"terminated": {"reason": "Completed"}}}],
                    "containerStatuses": [],
                },
                "Pending",
                id="an init container that is done is no reason",
            ),
            pytest.param(
                {"phase": "Failed", "reason": "Evicted", "conditions": NOT_READY}, "Failed: Evicted", id="evicted"
            ),
            pytest.param({"phase": "Succeeded", "conditions": NOT_READY}, "Succeeded", id="done"),
            pytest.param(
                {"conditions": [condition("Ready", status="False"), condition("ContainersReady")]},
                "its node is not heard of",
                id="its node is lost",
            ),
            pytest.param({"conditions": NOT_READY}, "not Ready", id="its probe fails"),
        ],
    )
    def test_is_said_in_a_few_words(self, status: dict[str, Any], why: str) -> None:
        assert pod(**status).waits_for == why

    def test_a_readiness_gate_is_no_lost_node(self) -> None:
        conditions = [condition("Ready", status="False"), condition("ContainersReady")]

        found = pod(spec={"readinessGates": [{"conditionType": "x"}]}, conditions=conditions)

        assert found.waits_for == "not Ready"
