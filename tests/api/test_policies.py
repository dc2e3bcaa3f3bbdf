"""Policies and quotas of the cluster's administrators: a job's templates are tried as what they will be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from testbed.ground import Namespace
from testbed.kube.wait import until
from testbed.mpijobs import MpiJob, submit
from testbed.plane.stages import ENDS, NEVER
from tests.api.controllers import Controller, job_name
from tests.promises import promise

API = "admissionregistration.k8s.io/v1"
IN_FORCE_WITHIN = 60.0
TEAM = "example.com/team"
OWN = "example.com/job"
COUNTED = ("count/jobs.batch", "count/statefulsets.apps")


@contextmanager
def policy(namespace: Namespace, job: str, rule: str, forbidden: Any) -> Iterator[str]:
    """A ValidatingAdmissionPolicy on the job's objects of a kind, while it is in force; the message of its no."""
    group, resource = forbidden["apiVersion"].split("/")[0], f"{forbidden['kind'].lower()}s"
    message = f"{resource} of {job} have to keep the rule"
    labels = {"training.kubeflow.org/job-name": job}
    matched = [
        {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
    ]
    head = {"apiVersion": API, "metadata": {"name": job}}
    namespace.kubectl.apply(
        {
            **head,
            "kind": "ValidatingAdmissionPolicy",
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": matched, "objectSelector": {"matchLabels": labels}},
                "validations": [{"expression": rule, "message": message}],
            },
        },
        {
            **head,
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": job, "validationActions": ["Deny"]},
        },
    )
    try:
        tried = {**forbidden, "metadata": {"name": f"{job}-tried", "labels": labels}}
        until(
            lambda: message in namespace.kubectl.answer_to(tried),
            within=IN_FORCE_WITHIN,
            what=f"the policy on {resource}",
        )
        yield message
    finally:
        for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            namespace.kubectl("delete", kind, job)


def pod(restart: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}],
                                                         "restartPolicy": restart}}  # fmt: skip


JOB = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": pod("Never")}}
STATEFUL_SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": pod("Always")},
}


@pytest.mark.one_in(3)
def test_a_policy_on_jobs_that_the_launcher_obeys_does_not_refuse_the_workers(jobs: Namespace) -> None:
    name = job_name("deadline")

    with policy(jobs, name, "has(object.spec.activeDeadlineSeconds)", JOB):
        job = submit(jobs, name, "busybox", ("true",), runPolicy={"activeDeadlineSeconds": 600})
        job.wait_for_end()
        jobs.kubectl("delete", "mpijobs.kubeflow.org", name, "--wait=false")


@promise(
    "A template that the API server rejects is reported with its words before anything is created.", of="MPIJob"
)
def test_a_policy_on_stateful_sets_sees_all_of_the_workers_and_refuses_them_before_anything_is_made(
    jobs: Namespace,
) -> None:
    name = job_name("team")
    annotations = "object.spec.template.metadata.?annotations.orValue({})"

    with policy(jobs, name, f"'{TEAM}' in {annotations}", STATEFUL_SET) as no:
        # Its template was not accepted before the policy was there.
        without = submit(jobs, name, "busybox", ("true",), annotations={"Worker": {OWN: name}})
        until(lambda: no in without.condition("Running").get("message", ""), within=60, what=f"the word {no!r}")

        assert not jobs.kubectl("get", "configmap", f"{name}-config", "--ignore-not-found").stdout
        jobs.kubectl("delete", "mpijobs.kubeflow.org", name)
        submit(jobs, name, "busybox", ("true",), annotations={"Worker": {TEAM: "blue"}}).wait_for_end()
        jobs.kubectl("delete", "mpijobs.kubeflow.org", name, "--wait=false")


@pytest.mark.one_in(3)
def test_a_quota_that_is_used_up_by_the_job_itself_does_not_keep_its_changes_back(alone: Controller) -> None:
    kubectl = alone.namespace.kubectl
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}}
    kubectl.apply({**quota, "spec": {"hard": dict.fromkeys(COUNTED, "1")}})
    until(lambda: "hard" in kubectl.get("resourcequota", "one").get("status", {}), within=30, what="the quota")
    job = submit(alone.namespace, job_name("one"), "busybox", ("true",), annotations={"Launcher": {ENDS: NEVER}})
    job.wait_for("Running")
    before = uids(job)

    # Part of both templates.
    job.change(runPolicy={"schedulingPolicy": {"queue": "other"}})

    until(lambda: is_replaced(job, before), within=120, what="other pods in place of all", instead=job.status)
    assert kubectl.get("resourcequota", "one")["status"]["used"] == dict.fromkeys(COUNTED, "1")


def is_replaced(job: MpiJob, before: set[str]) -> bool:
    now = uids(job)
    return len(now) == len(before) and not now & before and job.holds("Running")


def uids(job: MpiJob) -> set[str]:
    """Of the pods that are there."""
    return {str(pod["metadata"]["uid"]) for role in ("worker", "launcher") for pod in job.pods(role)}
