"""A pod whose fields are missing, or are not what they should be, is read nevertheless."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mpirt.discover.discovery import Criteria, discover, read_pod
from mpirt.errors import SpecError

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
