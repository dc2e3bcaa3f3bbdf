"""What is read of a pod, whatever its fields are, and the words for why it isn't Ready."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpirt.discover.discovery import Container, Criteria, Owner, discover, read_pod
from mpirt.errors import PeerError, SpecError
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


def pending(*conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"phase": "Pending", "conditions": list(conditions), "containerStatuses": [], **status}


def unscheduled(reason: str = "") -> dict[str, Any]:
    return pending(condition("PodScheduled", status="False", reason=reason))


def ended(reason: str, *, ready: bool) -> list[dict[str, Any]]:
    return [{"ready": ready, "state": {"terminated": {"reason": reason}}}]


class TestWhyItIsNotReady:
    @pytest.mark.parametrize(
        ("status", "why"),
        [
            pytest.param(unscheduled("Unschedulable"), "Unschedulable", id="no node takes it"),
            pytest.param(unscheduled(), "not scheduled", id="no node yet"),
            (pending(containerStatuses=[waiting("ImagePullBackOff")]), "ImagePullBackOff"),
            pytest.param(
                pending(
                    initContainerStatuses=[waiting("CrashLoopBackOff")],
                    containerStatuses=[waiting("PodInitializing")],
                ),
                "CrashLoopBackOff",
                id="an init container fails",
            ),
            (pending(containerStatuses=[waiting("ContainerCreating")]), "ContainerCreating"),
            ({"conditions": NOT_READY, "containerStatuses": ended("OOMKilled", ready=False)}, "OOMKilled"),
            (pending(initContainerStatuses=ended("Completed", ready=True)), "Pending"),
            ({"phase": "Failed", "reason": "Evicted", "conditions": NOT_READY}, "Failed: Evicted"),
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


ODD: st.SearchStrategy[Any] = st.sampled_from([None, 0, 1.5, True, "", "x", [], ["x"], {}, {"x": "y"}])
REASONS = st.sampled_from(["OOMKilled", "ContainerCreating", "PodInitializing", "Completed", "", None])
TEXTS = st.sampled_from(["", "a", "main", "true", "false", "Running", "Pending", "Failed", "Succeeded", 'é\n"'])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Fields of which any may be missing, or not what it should be."""
    mostly = {name.replace("__", "/").replace("_", "."): found | ODD for name, found in fields.items()}
    return st.fixed_dictionaries({}, optional=mostly)


def several(row: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(row | ODD, max_size=3)


ENDS = some(reason=REASONS, message=TEXTS)
STATUSES = several(some(name=TEXTS, ready=st.booleans(), state=some(waiting=ENDS, terminated=ENDS, running=ENDS)))
CONDITIONS = several(
    some(
        type=st.sampled_from(["Ready", "ContainersReady", "PodScheduled", "DisruptionTarget", "Initialized"]),
        status=st.sampled_from(["True", "False", "Unknown"]),
        reason=REASONS,
    )
)
CONTAINERS = several(
    some(
        name=TEXTS,
        image=TEXTS,
        resources=some(limits=some(cpu=TEXTS, nvidia_com__gpu=st.integers() | TEXTS, amd_com__gpu=TEXTS)),
    )
)
ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("mpirt.dev/slots", "mpirt.dev/draining", "kubectl.kubernetes.io/default-container", "other"), TEXTS | ODD
    ),
)
LABELS = st.dictionaries(st.sampled_from(["mpirt.dev/role", "mpi-job-role", "app"]), TEXTS | ODD)
OWNERS = several(some(kind=TEXTS, name=TEXTS, uid=TEXTS, controller=st.booleans()))
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.just("w-0")},
            optional={
                "labels": LABELS | ODD,
                "annotations": ANNOTATIONS | ODD,
                "ownerReferences": OWNERS | ODD,
                "generateName": TEXTS | ODD,
                "deletionTimestamp": TEXTS | ODD,
                "creationTimestamp": TEXTS | ODD,
            },
        )
    },
    optional={
        "spec": some(containers=CONTAINERS, readinessGates=several(ODD), nodeName=TEXTS),
        "status": some(
            phase=TEXTS,
            reason=REASONS,
            conditions=CONDITIONS,
            containerStatuses=STATUSES,
            initContainerStatuses=STATUSES,
        ),
    },
)


@given(st.lists(PODS, max_size=3), st.sampled_from(["", "main", "a"]))
def test_pods_of_any_shape_are_judged_or_refused(bodies: list[dict[str, Any]], container: str) -> None:
    pods = [read_pod(body) for body in bodies]

    try:
        found = discover(pods, Criteria(container=container), asked="--job train")
    except SpecError as error:
        assert error.field
    else:
        assert all(pod.waits_for or pod.ready for pod in pods)
        assert len(found.hosts) + len(found.left_out) <= len(pods)
