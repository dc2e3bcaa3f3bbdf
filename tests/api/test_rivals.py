"""
Jobs that mpi-operator has begun: what it makes is made here by hand, with its names, labels and owners.

As in kubeflow/mpi-operator v0.8.2, pkg/controller/mpi_job_controller.go: its ConfigMap, Service, Secret and
launcher Job carry no label of ours; its workers are pods that the job controls by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from testbed.kube.kubectl import Manifest
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import ENDS, NEVER
from tests.api.controllers import Controller, job_name
from tests.promises import promise

ANOTHER = "example.com/another"
US = "mpirt.dev/controller"
OPERATOR = {"training.kubeflow.org/operator-name": "mpi-operator"}
SLEEP = {"name": "mpi", "image": "none", "command": ["sleep", "infinity"]}
WITHIN = 90.0


class TheirJob:
    """A job that the controller may not touch until its manager is taken away, with objects of mpi-operator."""

    def __init__(self, controller: Controller, **run_policy: Any) -> None:
        policy = {**run_policy, "managedBy": ANOTHER}
        self.job: MpiJob = submit(
            controller.namespace, job_name("theirs"), "busybox", ["true"], workers=1, runPolicy=policy
        )
        self.name, self._kubectl = self.job.name, controller.namespace.kubectl
        self._uid = self.job.body()["metadata"]["uid"]

    def manager_is(self, manager: str | None) -> None:
        self.job.change(runPolicy={"managedBy": manager})

    def begin(self, *, suspend: bool = False) -> None:
        """As far as it comes before there is a launcher pod."""
        selector = {**OPERATOR, "training.kubeflow.org/job-name": self.name}
        service = {"clusterIP": "None", "selector": selector}
        self._make("v1", "Service", self.name, spec=service)
        self._make("v1", "ConfigMap", f"{self.name}-config", data={"hostfile": "x slots=1\n"})
        self._make("v1", "Secret", f"{self.name}-ssh", stringData={"ssh-publickey": "x"})
        labels = {**selector, "training.kubeflow.org/job-role": "worker"}
        self._make("v1", "Pod", f"{self.name}-worker-0", labels=labels, spec={"containers": [SLEEP]})
        if suspend:
            self.launch(suspend=True)

    def launch(self, *, suspend: bool = False) -> None:
        labels = {
            **OPERATOR,
            "training.kubeflow.org/job-name": self.name,
            "training.kubeflow.org/job-role": "launcher",
        }
        metadata = {"labels": labels, "annotations": {ENDS: NEVER}}
        pod = {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [SLEEP]}}
        self._make("batch/v1", "Job", f"{self.name}-launcher", spec={"suspend": suspend, "template": pod})

    def objects(self) -> dict[str, str]:
        """Uids and versions of what it has made, as far as it is there, but for what Kubernetes itself changes."""
        kinds = ("service/", "configmap/-config", "secret/-ssh", "pod/-worker-0", "job/-launcher")
        words = [kind.replace("/", f"/{self.name}") for kind in kinds]
        found = self._kubectl.get(*words, "--ignore-not-found") if words else []
        return {f"{each['kind']} {each['metadata']['name']}": each["metadata"]["uid"] for each in found}

    def config(self) -> Manifest:
        found: Manifest = self._kubectl.get("configmap", f"{self.name}-config")
        return found

    def _make(
        self, api_version: str, kind: str, name: str, *, labels: Mapping[str, str] | None = None, **fields: Any
    ) -> None:
        owner = {
            "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": self.name, "uid": self._uid,
            "controller": True, "blockOwnerDeletion": True,
        }  # fmt: skip
        metadata = {"name": name, "labels": {"app": self.name, **(labels or {})}, "ownerReferences": [owner]}
        body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
        self._kubectl("create", "--filename=-", stdin=json.dumps(body))


def run_another(controller: Controller) -> None:
    """Who has come to the end of a job that came later has looked at all others, too."""
    submit(controller.namespace, job_name("next"), "busybox", ["true"], workers=1).wait_for_end()


@pytest.fixture
def theirs(controller: Controller) -> TheirJob:
    return TheirJob(controller)


@promise("A job that mpi-operator has started or run to its end is left alone.", of="neighbours")
def test_a_job_that_runs_under_mpi_operator_is_not_touched(controller: Controller, theirs: TheirJob) -> None:
    theirs.begin()
    theirs.launch()
    until(lambda: theirs.job.pods("launcher"), within=WITHIN, what="its launcher pod")
    before, config = theirs.objects(), theirs.config()

    theirs.manager_is(None)
    run_another(controller)
    theirs.manager_is(US)
    run_another(controller)

    assert theirs.objects() == before
    assert theirs.config() == config
    assert [pod["metadata"].get("deletionTimestamp") for pod in theirs.job.pods("launcher")] == [None]
    assert theirs.job.status() == {}


@promise("A job that another controller has begun and not started is left alone and says so.", of="neighbours")
@pytest.mark.parametrize(
    ("manager", "suspend"),
    [
        pytest.param(None, False, id="no manager is named"),
        pytest.param(US, False, id="we are named, without a launcher Job"),
        pytest.param(US, True, id="we are named, with a launcher Job that waits"),
    ],
)
def test_a_job_that_mpi_operator_never_started_says_why_it_does_not_run(
    theirs: TheirJob, manager: str | None, *, suspend: bool
) -> None:
    theirs.begin(suspend=suspend)
    before, config = theirs.objects(), theirs.config()

    theirs.manager_is(manager)
    theirs.job.wait_for_reason("MPIJobRunByAnother")

    message = theirs.job.condition("Running")["message"]
    assert f"{theirs.name}-" in message
    assert "To run the job here, delete it and create it again" in message
    assert theirs.objects() == before
    assert theirs.config() == config
