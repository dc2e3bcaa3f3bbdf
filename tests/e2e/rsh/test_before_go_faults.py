"""
A command waits for its pod, its node and the API server while they come, and runs exactly once when they are
there.

Its line is left in a folder of the node's, which outlives the pod: a pod that takes another one's name would hide
what has run in the first.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pytest

from testbed import manifests
from testbed.ground import Faults, Namespace
from testbed.kube import faults, nodes
from testbed.kube.wait import until
from tests.e2e.rsh.starts import Outcome, Start, started, wait_for_the_end_of_all
from tests.promises import promise

_IMAGE = "busybox"
_POD = "late"
_NODE = "node-2"
_KUBELET = f"kubelet:{_NODE}"
_RUNS = Path("/runs/runs")


class LatePod:
    """A folder that the pods of a test share with it, and the one pod that comes, goes and comes again."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self._folder = namespace.folder / "runs"
        self._folder.mkdir()

    def create(self, **spec: Any) -> None:
        """Create the pod, without waiting for anything."""
        image = self.namespace.ground.image(_IMAGE)
        volume = {"name": "runs", "hostPath": {"path": str(self._folder)}}
        container = manifests.idle_container(image) | {
            "volumeMounts": [{"name": "runs", "mountPath": str(_RUNS.parent)}]
        }
        settings = {**manifests.on(_NODE), "volumes": [volume], "containers": [container], **spec}
        self.namespace.kubectl.apply(manifests.pod(_POD, image=image, **settings))

    def create_ready(self) -> None:
        self.create()
        self.namespace.wait_until_ready(_POD)

    def started(self) -> AbstractContextManager[Start]:
        return started(self.namespace, _POD, "ran", _RUNS)

    def assert_ran_once(self, start: Start) -> None:
        code = start.code()
        wait_for_the_end_of_all(self.namespace, _POD)
        outcome = Outcome("", code, start.log(), len(self._lines()))
        assert (outcome.code, list(outcome.problems())) == (0, []), outcome.log

    def _lines(self) -> Sequence[str]:
        return (self._folder / _RUNS.name).read_text().splitlines()


@pytest.fixture
def pod(namespace: Namespace, fault: Faults) -> LatePod:
    return LatePod(namespace)


@promise(
    "Until a command starts, the agent waits for a pod, container or API server that is late.", of="mpirt-rsh"
)
def test_a_pod_that_has_no_node_yet_is_waited_for(pod: LatePod) -> None:
    pod.create(schedulerName="nobody")
    with pod.started() as start:
        start.says("does not have a host assigned")
        bind(pod.namespace)

        pod.assert_ran_once(start)


@promise(
    "Until a command starts, the agent waits for a pod, container or API server that is late.", of="mpirt-rsh"
)
def test_a_container_that_is_being_created_is_waited_for(pod: LatePod) -> None:
    image = pod.namespace.ground.image(_IMAGE)
    gate = "until [ -e /tmp/open ]; do sleep 0.1; done"
    first = {"name": "first", "image": image, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", gate]}
    pod.create(initContainers=[first])
    with pod.started() as start:
        start.says("not open")
        running = ["get", "pod", _POD, "--output=jsonpath={.status.initContainerStatuses[0].state.running}"]
        until(lambda: pod.namespace.kubectl(*running).stdout, within=60, what="its first container")
        # The container may end, and take touch along, as soon as the file is there.
        open_it = ["exec", _POD, "--container=first", "--", "touch", "/tmp/open"]
        pod.namespace.kubectl(*open_it, check=False)

        pod.assert_ran_once(start)


@promise("No command is started twice, wherever its connection breaks.", of="mpirt-rsh")
def test_a_pod_that_is_replaced_during_the_attempt_gets_the_command_once(pod: LatePod, fault: Faults) -> None:
    pod.create_ready()
    fault.freeze(_KUBELET)
    with pod.started() as start:
        start.says("] dial: ")
        old = pod.namespace.kubectl.get("pod", _POD)["metadata"]["uid"]
        fault.force_delete(pod.namespace.kubectl, _POD)
        # Thawed, the kubelet would open it for the command before it ends it, at times.
        for pid in list(nodes.container_pids(faults.node_named(_NODE), old)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        pod.create()
        fault.thaw(_KUBELET)

        pod.assert_ran_once(start)


@promise(
    "Until a command starts, the agent waits for a pod, container or API server that is late.", of="mpirt-rsh"
)
@promise("A failure before a command starts is retried, within the connect timeout.", of="mpirt-rsh")
@pytest.mark.parametrize(
    ("freezes", "kills", "dies_meanwhile"),
    [
        pytest.param(False, True, False, id="an API server that is started during the attempts"),
        pytest.param(True, True, True, id="an API server that dies during an attempt"),
        pytest.param(True, False, False, id="a kubelet that is frozen for a while"),
    ],
)
def test_who_is_away_is_waited_for(
    pod: LatePod, fault: Faults, *, freezes: bool, kills: bool, dies_meanwhile: bool
) -> None:
    pod.create_ready()
    if freezes:
        fault.freeze(_KUBELET)
    if kills and not dies_meanwhile:
        fault.kill("apiserver")
    with pod.started() as start:
        if dies_meanwhile:
            start.says("] dial: ")
            fault.kill("apiserver")
        start.says("not open")
        if kills:
            fault.start("apiserver")
        if freezes:
            fault.thaw(_KUBELET)

        pod.assert_ran_once(start)


def bind(namespace: Namespace) -> None:
    """Do the scheduler's work for a pod that waits for a scheduler that doesn't exist."""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": _POD, "namespace": namespace.name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": _NODE},
    }
    path = f"/api/v1/namespaces/{namespace.name}/pods/{_POD}/binding"
    namespace.kubectl("create", f"--raw={path}", "--filename=-", stdin=json.dumps(binding))
