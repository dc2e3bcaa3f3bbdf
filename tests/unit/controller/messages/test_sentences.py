"""Messages about pods."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.messages.causes import launcher_end as said_of_launcher
from mpirt.controller.messages.causes import listed, pod_end, trouble
from mpirt.controller.observed.history import launcher_end, worker_death
from mpirt.controller.observed.pods import read_pod
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, at, time

UNSCHEDULABLE: dict[str, str | Body] = {
    "PodScheduled": {"status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available: 2 cpu."}
}


SIDECAR = {"initContainers": [{"name": "proxy", "restartPolicy": "Always", "image": "proxy"}]}


def one(container: Body, **pod: Any) -> Body:
    """A pod that isn't Ready because of a container."""
    return pods.worker(0, conditions=pods.not_ready(), containers=[container], **pod)


def said_of_worker(said: str) -> str:
    return f"train-worker-0{said}" if said else ""


MOUNTS = {"volumes": [{"name": "x"}, {"name": "mpirt-runtime", "image": {"reference": "mpirt/runtime:1"}}]}

TROUBLES = [
    (pods.worker(0), ""),
    (pods.worker(0, deleted=9), " is being deleted on node node-1"),
    (pods.worker(0, deleted=9, node=""), " is being deleted"),
    (
        pods.worker(0, conditions={}, phase="Failed", reason="Evicted", message="low on memory. "),
        " was evicted: low on memory",
    ),
    (
        pods.worker(0, conditions={}, phase="Failed", reason="UnexpectedAdmissionError"),
        " failed (UnexpectedAdmissionError)",
    ),
    (pods.worker(0, conditions={}, phase="Failed"), " failed"),
    (pods.worker(0, conditions=pods.lost(3)), " is on node node-1, which is unreachable"),
    (
        pods.worker(0, conditions=UNSCHEDULABLE, containers=[], node=""),
        " is not scheduled: Unschedulable: 0/2 nodes are available: 2 cpu.",
    ),
    (pods.worker(0, conditions={}, containers=[], node=""), " is waiting for a node"),
    (one(pods.waiting("main", "ContainerCreating")), " is starting on node node-1"),
    (
        one(pods.waiting("main", "ErrImagePull", "rpc error")),
        ": container main: ImagePullBackOff: image mpi:4 can't be pulled",
    ),
    (
        one(pods.waiting("main", "ImagePullBackOff", "Back-off")),
        ": container main: ImagePullBackOff: image mpi:4 can't be pulled",
    ),
    (
        one(
            pods.waiting("main", "ErrImagePull", 'failed to pull and unpack image "docker.io/mpirt/runtime:1"'),
            spec=MOUNTS,
        ),
        ": container main: ImagePullBackOff: image mpirt/runtime:1 can't be pulled",
    ),
    (
        one(pods.waiting("main", "ImagePullBackOff", 'Back-off pulling image "mpi:4"'), spec=MOUNTS),
        ": container main: ImagePullBackOff: image mpi:4 can't be pulled",
    ),
    (
        one(
            pods.waiting("main", "ErrImageNeverPull", 'image "mpirt/runtime:1" is not present'),
            spec=MOUNTS,
        ),
        ': container main: ErrImageNeverPull: image "mpirt/runtime:1" is not present',
    ),
    (
        one(pods.waiting("main", "ImageVolumeMountFailed", "can't mount"), spec=MOUNTS),
        ": container main: ImageVolumeMountFailed: can't mount",
    ),
    (
        one(pods.waiting("main", "CrashLoopBackOff", lastState=pods.terminated(2))),
        ": container main: CrashLoopBackOff: ended with code 2",
    ),
    (one(pods.waiting("main", "CrashLoopBackOff")), ": container main: CrashLoopBackOff"),
    (
        one(pods.waiting("main", "CreateContainerConfigError", 'secret "x" not found')),
        ': container main: CreateContainerConfigError: secret "x" not found',
    ),
    (one(pods.waiting("main", "RunContainerError")), ": container main: RunContainerError"),
    (one(pods.ended("main", 1)), ": container main ended with code 1"),
    (
        one(pods.running("main", ready=False)),
        ": container main runs but is not Ready: its readiness probe does not succeed",
    ),
    (one(pods.waiting("main", "PodInitializing"), inits=[pods.running("fetch")]), ": init container fetch runs"),
    (
        one(
            pods.waiting("main", "PodInitializing"),
            inits=[pods.ended("fetch", 0, "Completed"), pods.waiting("more", "ErrImagePull")],
        ),
        ": init container more: ImagePullBackOff: image mpi:4 can't be pulled",
    ),
    (one(pods.running("main")), " is starting on node node-1"),
    (
        one(pods.waiting("main", "ErrImagePull"), inits=[pods.running("proxy")], spec=SIDECAR),
        ": container main: ImagePullBackOff: image mpi:4 can't be pulled",
    ),
    (
        one(pods.waiting("main", "PodInitializing"), inits=[pods.running("proxy")], spec=SIDECAR),
        " is starting on node node-1",
    ),
    (
        one(pods.running("main"), inits=[pods.running("proxy", ready=False)], spec=SIDECAR),
        ": init container proxy runs but is not Ready: its readiness probe does not succeed",
    ),
]


class TestWhyAPodIsNotReady:
    @pytest.mark.parametrize(("body", "said"), TROUBLES, ids=[said or "nothing" for _, said in TROUBLES])
    def test_the_message_names_the_cause(self, body: Body, said: str) -> None:
        assert trouble(read_pod(body)) == said_of_worker(said)

    def test_the_trouble_of_the_main_container_comes_before_that_of_others(self) -> None:
        shipper, main = pods.waiting("a-shipper", "CrashLoopBackOff"), pods.waiting("main", "ErrImagePull")
        body = pods.worker(0, conditions=pods.not_ready(), containers=[shipper, main])

        assert "container main: ImagePullBackOff" in trouble(read_pod(body), "main")

    def test_a_node_with_readiness_gates_is_not_taken_for_lost(self) -> None:
        gated = pods.worker(0, conditions=pods.lost(3), spec={"readinessGates": [{"conditionType": "x"}]})

        assert read_pod(gated).cut_off is None


DEATHS = [
    (pods.worker(0), ""),
    (pods.worker(0, conditions={}, phase="Failed", reason="Evicted"), " was evicted"),
    (pods.worker(0, conditions=pods.lost(3)), " was lost with its node node-1"),
    (pods.worker(0, deleted=9), " was deleted"),
    (
        pods.worker(
            0,
            deleted=9,
            conditions={"DisruptionTarget": {"status": "True", "reason": "PreemptionByScheduler"}},
        ),
        " was deleted (PreemptionByScheduler)",
    ),
    (
        pods.worker(0, containers=[pods.restarted("main", 137, "OOMKilled", at=20)]),
        ": container main ended with code 137 (OOMKilled)",
    ),
    (pods.worker(0, containers=[pods.ended("main", 1, at=20)]), ": container main ended with code 1"),
    (pods.worker(0, containers=[pods.restarted("main", 1, at=10)]), ""),
    (pods.worker(0, created=20), ""),
]


class TestHowAPodDied:
    @pytest.mark.parametrize(("body", "said"), DEATHS, ids=[said or "nothing" for _, said in DEATHS])
    def test_the_message_names_the_cause(self, body: Body, said: str) -> None:
        death = worker_death(read_pod(body), "main", at(15))

        assert (pod_end(death) if death is not None else "") == said_of_worker(said)


ENDS = [
    (
        pods.launcher(phase="Failed", containers=[pods.ended("mpi", 3, message="a\nb\n")]),
        " ended with code 3: a\nb",
    ),
    (
        pods.launcher(phase="Failed", containers=[pods.ended("mpi", 137, "OOMKilled")]),
        " ended with code 137 (OOMKilled)",
    ),
    (pods.launcher(phase="Failed", containers=[pods.ended("mpi", 143)]), " ended with code 143 (SIGTERM)"),
    (
        pods.launcher(
            phase="Failed",
            containers=[pods.ended("mpi", 249, message="step 7\nmpirt-rsh: node-2 is lost\nORTE\n")],
        ),
        " ended with code 249: mpirt-rsh: node-2 is lost\nstep 7\nORTE",
    ),
    (pods.launcher(deleted=20), " was deleted"),
    (pods.launcher(deleted=20, conditions=pods.lost(9)), " was lost with its node node-1"),
    (
        pods.launcher(phase="Failed", inits=[pods.ended("mpirt-wait", 244, message="no way")], containers=[]),
        " ended with code 244: no way",
    ),
    (pods.launcher(phase="Failed", reason="Evicted", message="disk", containers=[]), " was evicted: disk"),
    (pods.launcher(phase="Failed", containers=[pods.ended("mpi", 0, "Completed")]), " failed"),
]


class TestHowALauncherEnded:
    @pytest.mark.parametrize(("body", "said"), ENDS, ids=[said for _, said in ENDS])
    def test_its_end_is_reported_with_its_last_lines(self, body: Body, said: str) -> None:
        end = launcher_end(read_pod(body), "mpi")

        assert end is not None
        assert said_of_launcher(end) == f"launcher pod train-launcher-1{said}"


class TestLists:
    def test_short_ones_are_whole(self) -> None:
        assert listed(["a", "b", "c"]) == "a; b; c"

    def test_long_ones_are_counted(self) -> None:
        assert listed(["a", "b", "c", "d", "e"]) == "a; b; c; and 2 more"


def test_a_pod_without_valid_fields_is_read() -> None:
    pod = read_pod(
        {"metadata": {"creationTimestamp": time(1), "deletionTimestamp": "soon"}, "status": {"conditions": 7}}
    )

    assert (pod.name, pod.ready, pod.deleted, pod.containers, pod.created) == ("", False, None, (), at(1))
