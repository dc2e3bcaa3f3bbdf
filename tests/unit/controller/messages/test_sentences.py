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


class TestWhyAPodIsNotReady:
    @pytest.mark.parametrize(
        ("body", "said"),
        [
            pytest.param(pods.worker(0), "", id="it is"),
            pytest.param(
                pods.worker(0, deleted=9), "train-worker-0 is being deleted on node node-1", id="deleted"
            ),
            pytest.param(
                pods.worker(0, deleted=9, node=""), "train-worker-0 is being deleted", id="deleted, no node"
            ),
            pytest.param(
                pods.worker(0, conditions={}, phase="Failed", reason="Evicted", message="low on memory. "),
                "train-worker-0 was evicted: low on memory",
                id="evicted",
            ),
            pytest.param(
                pods.worker(0, conditions={}, phase="Failed", reason="UnexpectedAdmissionError"),
                "train-worker-0 failed (UnexpectedAdmissionError)",
                id="failed as a whole",
            ),
            pytest.param(pods.worker(0, conditions={}, phase="Failed"), "train-worker-0 failed", id="failed"),
            pytest.param(
                pods.worker(0, conditions=pods.lost(3)),
                "train-worker-0 is on node node-1, which is unreachable",
                id="node lost",
            ),
            pytest.param(
                pods.worker(0, conditions=UNSCHEDULABLE, containers=[], node=""),
                "train-worker-0 is not scheduled: Unschedulable: 0/2 nodes are available: 2 cpu.",
                id="no room",
            ),
            pytest.param(
                pods.worker(0, conditions={}, containers=[], node=""),
                "train-worker-0 is waiting for a node",
                id="new",
            ),
            pytest.param(
                one(pods.waiting("main", "ContainerCreating")),
                "train-worker-0 is starting on node node-1",
                id="starting",
            ),
            pytest.param(
                one(pods.waiting("main", "ErrImagePull", "rpc error")),
                "train-worker-0: container main: ImagePullBackOff: image mpi:4 can't be pulled",
                id="image not pulled",
            ),
            pytest.param(
                one(pods.waiting("main", "ImagePullBackOff", "Back-off")),
                "train-worker-0: container main: ImagePullBackOff: image mpi:4 can't be pulled",
                id="image not pulled, in other words",
            ),
            pytest.param(
                one(pods.waiting("main", "CrashLoopBackOff", lastState=pods.terminated(2))),
                "train-worker-0: container main: CrashLoopBackOff: ended with code 2",
                id="dies again and again",
            ),
            pytest.param(
                one(pods.waiting("main", "CrashLoopBackOff")),
                "train-worker-0: container main: CrashLoopBackOff",
                id="dies without a trace",
            ),
            pytest.param(
                one(pods.waiting("main", "CreateContainerConfigError", 'secret "x" not found')),
                'train-worker-0: container main: CreateContainerConfigError: secret "x" not found',
                id="configuration",
            ),
            pytest.param(
                one(pods.waiting("main", "RunContainerError")),
                "train-worker-0: container main: RunContainerError",
                id="anything else",
            ),
            pytest.param(
                one(pods.ended("main", 1)), "train-worker-0: container main ended with code 1", id="ended"
            ),
            pytest.param(
                one(pods.running("main", ready=False)),
                "train-worker-0: container main runs but is not Ready: its readiness probe does not succeed",
                id="readiness",
            ),
            pytest.param(
                one(pods.waiting("main", "PodInitializing"), inits=[pods.running("fetch")]),
                "train-worker-0: init container fetch runs",
                id="initialising",
            ),
            pytest.param(
                one(
                    pods.waiting("main", "PodInitializing"),
                    inits=[pods.ended("fetch", 0, "Completed"), pods.waiting("more", "ErrImagePull")],
                ),
                "train-worker-0: init container more: ImagePullBackOff: image mpi:4 can't be pulled",
                id="image of an init container",
            ),
            pytest.param(
                one(pods.running("main")), "train-worker-0 is starting on node node-1", id="a readiness gate"
            ),
            pytest.param(
                one(pods.waiting("main", "ErrImagePull"), inits=[pods.running("proxy")], spec=SIDECAR),
                "train-worker-0: container main: ImagePullBackOff: image mpi:4 can't be pulled",
                id="an image that can't be pulled, before a sidecar that runs",
            ),
            pytest.param(
                one(pods.waiting("main", "PodInitializing"), inits=[pods.running("proxy")], spec=SIDECAR),
                "train-worker-0 is starting on node node-1",
                id="starting beside a sidecar that runs",
            ),
            pytest.param(
                one(pods.running("main"), inits=[pods.running("proxy", ready=False)], spec=SIDECAR),
                "train-worker-0: init container proxy runs but is not Ready: its readiness probe does not succeed",
                id="a sidecar whose probe fails",
            ),
        ],
    )
    def test_the_message_names_the_cause(self, body: Body, said: str) -> None:
        assert trouble(read_pod(body)) == said

    def test_the_trouble_of_the_main_container_comes_before_that_of_others(self) -> None:
        shipper, main = pods.waiting("a-shipper", "CrashLoopBackOff"), pods.waiting("main", "ErrImagePull")
        body = pods.worker(0, conditions=pods.not_ready(), containers=[shipper, main])

        assert "container main: ImagePullBackOff" in trouble(read_pod(body), "main")

    def test_a_node_with_readiness_gates_is_not_taken_for_lost(self) -> None:
        gated = pods.worker(0, conditions=pods.lost(3), spec={"readinessGates": [{"conditionType": "x"}]})

        assert read_pod(gated).cut_off is None


class TestHowAPodDied:
    @pytest.mark.parametrize(
        ("body", "said"),
        [
            pytest.param(pods.worker(0), "", id="it did not"),
            pytest.param(
                pods.worker(0, conditions={}, phase="Failed", reason="Evicted"),
                "train-worker-0 was evicted",
                id="evicted",
            ),
            pytest.param(
                pods.worker(0, conditions=pods.lost(3)),
                "train-worker-0 was lost with its node node-1",
                id="node lost",
            ),
            pytest.param(pods.worker(0, deleted=9), "train-worker-0 was deleted", id="deleted"),
            pytest.param(
                pods.worker(
                    0,
                    deleted=9,
                    conditions={"DisruptionTarget": {"status": "True", "reason": "PreemptionByScheduler"}},
                ),
                "train-worker-0 was deleted (PreemptionByScheduler)",
                id="preempted",
            ),
            pytest.param(
                pods.worker(0, containers=[pods.restarted("main", 137, "OOMKilled", at=20)]),
                "train-worker-0: container main ended with code 137 (OOMKilled)",
                id="killed and started again",
            ),
            pytest.param(
                pods.worker(0, containers=[pods.ended("main", 1, at=20)]),
                "train-worker-0: container main ended with code 1",
                id="ended",
            ),
            pytest.param(pods.worker(0, containers=[pods.restarted("main", 1, at=10)]), "", id="before that time"),
            pytest.param(pods.worker(0, created=20), "", id="another pod, which knows nothing"),
        ],
    )
    def test_the_message_names_the_cause(self, body: Body, said: str) -> None:
        death = worker_death(read_pod(body), "main", at(15))

        assert (pod_end(death) if death is not None else "") == said


class TestHowALauncherEnded:
    @pytest.mark.parametrize(
        ("body", "said"),
        [
            pytest.param(
                pods.launcher(phase="Failed", containers=[pods.ended("mpi", 3, message="a\nb\n")]),
                "launcher pod train-launcher-1 ended with code 3: a\nb",
                id="with last words",
            ),
            pytest.param(
                pods.launcher(phase="Failed", containers=[pods.ended("mpi", 137, "OOMKilled")]),
                "launcher pod train-launcher-1 ended with code 137 (OOMKilled)",
                id="without",
            ),
            pytest.param(
                pods.launcher(phase="Failed", containers=[pods.ended("mpi", 143)]),
                "launcher pod train-launcher-1 ended with code 143 (SIGTERM)",
                id="by a signal",
            ),
            pytest.param(
                pods.launcher(
                    phase="Failed",
                    containers=[pods.ended("mpi", 249, message="step 7\nmpirt-rsh: node-2 is lost\nORTE\n")],
                ),
                "launcher pod train-launcher-1 ended with code 249: mpirt-rsh: node-2 is lost\nstep 7\nORTE",
                id="the agent's line first",
            ),
            pytest.param(pods.launcher(deleted=20), "launcher pod train-launcher-1 was deleted", id="deleted"),
            pytest.param(
                pods.launcher(deleted=20, conditions=pods.lost(9)),
                "launcher pod train-launcher-1 was lost with its node node-1",
                id="deleted by us because its node is lost",
            ),
            pytest.param(
                pods.launcher(
                    phase="Failed", inits=[pods.ended("mpirt-wait", 244, message="no way")], containers=[]
                ),
                "launcher pod train-launcher-1 ended with code 244: no way",
                id="before it began",
            ),
            pytest.param(
                pods.launcher(phase="Failed", reason="Evicted", message="disk", containers=[]),
                "launcher pod train-launcher-1 was evicted: disk",
                id="evicted",
            ),
            pytest.param(
                pods.launcher(phase="Failed", containers=[pods.ended("mpi", 0, "Completed")]),
                "launcher pod train-launcher-1 failed",
                id="unknown",
            ),
        ],
    )
    def test_its_end_is_reported_with_its_last_lines(self, body: Body, said: str) -> None:
        end = launcher_end(read_pod(body), "mpi")

        assert end is not None
        assert said_of_launcher(end) == said


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
