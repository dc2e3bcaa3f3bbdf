"""
Others have a say in a job's objects: a policy refuses a change, a queue suspends the launcher, an autopilot edits.

What the controller makes of an API server's answers is tested here too: how those look only a real one knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mpirt.controller.cluster.link import connect
from mpirt.controller.cluster.writes import Writer
from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Conflict, Done, Patch, WriteStatus
from mpirt.controller.model.spec import JobKey
from mpirt.controller.monitoring.metrics import Metrics
from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob
from testbed.plane.plane import Plane
from tests.api.controllers import Controller, job_name
from tests.api.endings import SUCCEEDS, WITHIN, have, launcher, running
from tests.promises import promise

POLICY = "admissionregistration.k8s.io/v1"
NOT_BY = "ConfigMaps are not changed by controllers"


@contextmanager
def no_config_map_is_changed_by(namespace: Namespace, user: str, config_map: str) -> Iterator[None]:
    """A ValidatingAdmissionPolicy, in force inside the block."""
    name = job_name("policy")
    where = {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"namespaceSelector": where, "resourceRules": [rule]},
        "validations": [{"expression": f"request.userInfo.username != '{user}'", "message": NOT_BY}],
    }
    policy = {"apiVersion": POLICY, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    binding = {
        **policy,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    kubectl = namespace.ground.kubectl
    kubectl.apply(policy, binding)

    def is_in_force() -> bool:
        words = (f"--as={user}", "--as-group=system:masters", "--dry-run=server")
        return NOT_BY in change(namespace, config_map, *words, check=False)

    try:
        until(is_in_force, within=WITHIN, what="the policy to be in force")
        yield
    finally:
        kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)


def change(namespace: Namespace, config_map: str, *words: str, check: bool = True) -> str:
    """Edit it; what is said against that."""
    patch = f"--patch={json.dumps({'data': {'hostfile': 'edited'}})}"
    return namespace.kubectl("patch", "configmap", config_map, "--type=merge", patch, *words, check=check).stderr


@promise("A change that a policy rejects is reported, and the end of the job still is, too.", of="MPIJob")
def test_a_change_that_a_policy_refuses_is_told_and_keeps_no_end_from_being_told(controller: Controller) -> None:
    with running(controller, "refused", retries=0) as one:
        job, namespace = one.job, controller.namespace
        user = f"system:serviceaccount:{namespace.name}:mpirt-controller"
        with no_config_map_is_changed_by(namespace, user, f"{job.name}-config"):
            change(namespace, f"{job.name}-config")
            job.wait_for_reason("MPIJobRefused")
            assert job.condition("Running")["status"] == "True"
            assert NOT_BY in job.condition("Running")["message"]

            have(job, launcher(job), SUCCEEDS)

            job.wait_for("Succeeded")


@promise("A launcher Job that a queue suspends stays suspended until the queue resumes it.", of="MPIJob")
def test_a_launcher_job_that_a_queue_suspends_stays_suspended_until_the_queue_resumes_it(
    controller: Controller,
) -> None:
    with running(controller, "suspended", retries=0) as one:
        job, kubectl = one.job, controller.namespace.kubectl
        suspend(job, is_suspended=True)
        until(lambda: not job.pods("launcher"), within=WITHIN, what="the launcher's pod to be gone")

        # The controller looks at the job, and puts right what is its own.
        change(controller.namespace, f"{job.name}-config")
        until(lambda: job.hosts() != ["edited"], within=WITHIN, what="the hostfile to be put right")

        assert kubectl.get("job", f"{job.name}-launcher")["spec"]["suspend"] is True
        suspend(job, is_suspended=False)
        job.wait_for("Running")


@promise("Whoever edits a job's object three times is named in the event MPIJobEditUndone.", of="MPIJob")
def test_a_manager_that_edits_an_object_again_and_again_is_named(controller: Controller) -> None:
    with running(controller, "edited", retries=0) as one:
        job = one.job
        for _ in range(3):
            change(controller.namespace, f"{job.name}-config", "--field-manager=autopilot")
            until(lambda: job.hosts() != ["edited"], within=WITHIN, what="the hostfile to be put right")

        about = f"--field-selector=involvedObject.name={job.name},reason=MPIJobEditUndone"
        [event] = until(
            lambda: controller.namespace.kubectl.get("events", about), within=WITHIN, what="MPIJobEditUndone"
        )
        assert event["message"].startswith(
            f"ConfigMap {job.name}-config: field manager autopilot changed /data, and mpirt-controller "
        )


class TestTheApiServersAnswer:
    @pytest.fixture
    def writer(self, plane: Plane) -> Iterator[Writer]:
        link = connect(str(plane.site.kubeconfig("admin")), count=Metrics().called)
        yield Writer(link, kinds.RESOURCES, {"MPIJob": lambda: MPI_JOB.resource}, within=30)
        link.close()

    def test_to_a_patch_of_another_object_or_of_a_path_that_is_not_there_is_a_conflict(
        self, namespace: Namespace, writer: Writer
    ) -> None:
        uid = config_map(namespace)["metadata"]["uid"]
        for guard, operation in (
            ("another", {"op": "add", "path": "/data/a", "value": "c"}),
            (uid, {"op": "remove", "path": "/data/nothing"}),
        ):
            test = {"op": "test", "path": "/metadata/uid", "value": guard}
            patch = Patch("ConfigMap", "it", (test, operation), "")

            assert isinstance(writer.carry_out(patch, JobKey("MPIJob", namespace.name, "it")), Conflict)

    def test_to_a_status_of_an_older_version_is_a_conflict(self, namespace: Namespace, writer: Writer) -> None:
        namespace.kubectl.apply(job_object())
        body = namespace.kubectl.get("mpijobs.kubeflow.org", "it")
        status: dict[str, Any] = {"conditions": [], "replicaStatuses": {}}
        write = WriteStatus(
            "MPIJob", "it", body["metadata"]["uid"], status, "", version=body["metadata"]["resourceVersion"]
        )
        key = JobKey("MPIJob", namespace.name, "it")

        assert isinstance(writer.carry_out(write, key), Done)
        later = WriteStatus(
            "MPIJob", "it", write.uid, {**status, "startTime": "2026-01-01T00:00:00Z"}, "", version=write.version
        )
        assert isinstance(writer.carry_out(later, key), Conflict)


def config_map(namespace: Namespace) -> dict[str, Any]:
    metadata = {"name": "it"}
    namespace.kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
    found: dict[str, Any] = namespace.kubectl.get("configmap", "it")
    return found


def job_object() -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "mpi", "image": "mpi"}]}}
    replicas = {role: {"replicas": 1, "template": template} for role in ("Launcher", "Worker")}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "it"},
        "spec": {"mpiReplicaSpecs": replicas},
    }


def suspend(job: MpiJob, *, is_suspended: bool) -> None:
    """As Kueue does."""
    patch = json.dumps({"spec": {"suspend": is_suspended}})
    words = ("--type=merge", f"--patch={patch}", "--field-manager=kueue")
    job.namespace.kubectl("patch", "job", f"{job.name}-launcher", *words)
