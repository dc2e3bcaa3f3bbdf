"""What a switchboard passes on of a pod: all that discovery reads, and nothing else."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mpirt.boards.podlist import document, pod_text, refusal, trimmed
from mpirt.discover.pods import read_pod
from tests.apiserver.pods import pod
from tests.unit.discover.pods import body, condition

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


class TestATrimmedPod:
    @given(PODS, st.sampled_from(["", "main", "a"]))
    def test_reads_as_the_pod_itself(self, whole: dict[str, Any], container: str) -> None:
        passed_on = json.loads(pod_text(whole))

        assert read_pod(passed_on, container=container) == read_pod(whole, container=container)

    def test_that_is_ready_has_nothing_that_says_why_it_isnt(self) -> None:
        whole = body(
            metadata={
                "labels": {"app": "x"},
                "annotations": {"mpirt.dev/slots": "2", "other": "y"},
                "managedFields": [{"manager": "kubelet"}],
            },
            spec={
                "containers": [{"name": "main", "image": "i", "resources": {"limits": {"cpu": 1, "x/gpu": 2}}}],
                "tolerations": [{}],
            },
            podIP="10.0.0.7",
        )

        assert trimmed(whole) == {
            "metadata": {
                "name": "w-0",
                "labels": {"app": "x"},
                "annotations": {"mpirt.dev/slots": "2"},
                "ownerReferences": [{"kind": "StatefulSet", "name": "w", "uid": "1", "controller": True}],
            },
            "spec": {"containers": [{"name": "main", "resources": {"limits": {"x/gpu": 2}}}]},
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": ""},
                    {"type": "ContainersReady", "status": "True", "reason": ""},
                ],
            },
        }

    def test_that_is_not_ready_says_why(self) -> None:
        state = {"waiting": {"reason": "ImagePullBackOff", "message": "long"}}
        whole = body(
            spec={"readinessGates": [{"conditionType": "x"}]},
            phase="Pending",
            reason="r",
            conditions=[condition("Initialized"), condition("PodScheduled")],
            containerStatuses=[{"name": "main", "ready": False, "restartCount": 3, "state": state}],
        )

        found = trimmed(whole)
        assert found["spec"] == {"containers": [{"name": "main"}], "readinessGates": [{}]}
        assert found["status"] == {
            "phase": "Pending",
            "reason": "r",
            "conditions": [{"type": "PodScheduled", "status": "True", "reason": ""}],
            "containerStatuses": [{"ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
        }


class TestTheDocument:
    def test_has_all_pods(self) -> None:
        found = json.loads(document([pod_text(pod("w-0")), pod_text(pod("w-1"))]))

        assert found["form"] == 1
        assert [each["metadata"]["name"] for each in found["pods"]] == ["w-0", "w-1"]

    def test_may_have_none(self) -> None:
        assert document([]) == b'{"form":1,"pods":[]}'

    def test_that_is_none_says_why(self) -> None:
        assert json.loads(refusal('a "name"')) == {"form": 1, "pods": None, "why": 'a "name"'}
