"""
TrainingJobs and what the API server makes of them: the scale subresource, new fields, quotas, names that are
taken, and deletion.
"""

from __future__ import annotations

import json
from typing import Any

from testbed.kube.wait import until
from tests.api.apiproxy import Where
from tests.api.beds import Bed
from tests.api.controllers import NAME, job_name
from tests.promises import promise
from tests.support import trainings
from tests.support.trainings import CRDS, GROUP, WITHIN, Training

# Newer than the schema that et-operator's CRD has: it would drop them.
NEW_FIELDS: dict[str, Any] = {
    "hostUsers": False,
    "schedulingGates": [{"name": "example.org/gate"}],
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
}


def running(bed: Bed, **fields: Any) -> Training:
    job = trainings.submit(bed.namespace, job_name("train"), **{"replicas": 2, **fields})
    job.wait_for("Running")
    return job


def wait_for_workers(job: Training, *numbers: int) -> None:
    wanted = [job.worker(number) for number in numbers]
    job.wait(lambda: sorted(job.workers()) == wanted, f"{wanted}")


@promise("A TrainingJob that is suspended gets no more workers.", of="TrainingJob")
def test_a_job_that_is_suspended_while_its_workers_are_created_gets_no_more_of_them(bed: Bed) -> None:
    large = Training(bed.namespace, job_name("large"))
    late = {large.worker(number) for number in range(10, 200)}
    # A controller that gives up waiting asks for the same worker again, however long the suspension takes.
    hold = bed.proxy.hold(Where.BEFORE, lambda write: write.kind == "pods" and write.name in late)
    trainings.submit(bed.namespace, large.name, replicas=200, most=200)
    hold.wait(WITHIN)

    large.suspend()
    # Changes of one kind are reported in their order: when a later job has a worker, the suspension is known.
    later = trainings.submit(bed.namespace, job_name("later"), replicas=1)
    later.wait(later.workers, "a worker of the later job")
    before = asked_workers(bed, large)
    hold.release()
    large.wait_for("Suspended")

    assert set(before) == set(names_of(large, 11))
    assert asked_workers(bed, large) == before


class TestTheScaleSubresource:
    @promise("kubectl scale adds and removes workers of a TrainingJob.", of="TrainingJob")
    def test_kubectl_scale_adds_and_removes_workers(self, bed: Bed) -> None:
        job = running(bed)

        job.scale(4)
        wait_for_workers(job, 0, 1, 2, 3)
        job.scale(1)
        wait_for_workers(job, 0)

        job.wait(lambda: job.hosts() == [f"{job.worker(0)}:1"], "one host")
        job.wait_for("Running")
        assert job.status()["targetWorkers"] == [job.worker(0)]

    def test_its_selector_selects_the_workers_and_no_other_pods(self, bed: Bed) -> None:
        job, _ = running(bed), running(bed)

        found = scale_of(job)

        until(lambda: scale_of(job)["status"]["replicas"] == 2, within=WITHIN, what="two Ready workers")
        selected = bed.namespace.kubectl.get("pods", f"--selector={found['status']['selector']}")
        assert sorted(pod["metadata"]["name"] for pod in selected) == [job.worker(0), job.worker(1)]
        assert found["spec"]["replicas"] == 2

    @promise(
        "There is one number of workers: scalers change it in the spec, as kubectl scale does.", of="TrainingJob"
    )
    def test_a_scaler_changes_what_it_says(self, bed: Bed) -> None:
        job = running(bed)

        outcome = job.scale_out(f"{job.name}-out", 1).outcome()

        assert outcome == ("ScaleSucceeded", f"added {job.worker(2)}")
        assert scale_of(job)["spec"]["replicas"] == 3

    @promise("A worker that is in use at a ScaleIn's time limit stays, and is a host again.", of="TrainingJob")
    def test_a_worker_in_use_does_not_leave_before_the_limit_and_then_stays(self, bed: Bed) -> None:
        job = running(bed)
        bed.proxy.busy[job.worker(1)] = 2

        outcome = job.scale_in(f"{job.name}-in", toDelete={"count": 1}, timeout=5).outcome()

        assert outcome == (
            "ScaleFailed",
            f"after 5 s still in use, and they stay: {job.worker(1)} is in use by 2 commands",
        )
        wait_for_workers(job, 0, 1)
        assert job.replicas() == 2
        wanted = [f"{job.worker(0)}:1", f"{job.worker(1)}:1"]
        until(lambda: job.hosts() == wanted, within=WITHIN, what="both hosts", instead=job.hosts)


def test_the_controllers_role_allows_it_to_ask_workers(bed: Bed) -> None:
    """The proxy answers for the API server, which would ask this first."""
    account = f"--as=system:serviceaccount:{bed.namespace.name}:{NAME}"

    said = [
        bed.namespace.kubectl("auth", "can-i", verb, "pods/exec", account).stdout for verb in ("get", "create")
    ]

    assert said == ["yes\n", "yes\n"]


@promise(
    "The CRDs have every field of pods that Kubernetes has, and the fields reach the pods.", of="installation"
)
def test_fields_that_are_newer_than_the_crd_come_to_the_pods(bed: Bed) -> None:
    job = trainings.submit(bed.namespace, job_name("new"), replicas=1, worker=NEW_FIELDS)

    pods = job.wait(job.pods, "its worker")

    kept = job.body()["spec"]["etReplicaSpecs"]["worker"]["template"]["spec"]
    assert {name: kept.get(name) for name in NEW_FIELDS} == NEW_FIELDS
    assert {name: pods[0]["spec"].get(name) for name in NEW_FIELDS} == NEW_FIELDS


@promise(
    "Workers that a quota refuses are reported, tried once for all, and created when there is room.",
    of="TrainingJob",
)
def test_a_quota_is_reported_at_once_and_asked_once_for_all_workers_until_there_is_room(
    bed: Bed,
) -> None:
    name = job_name("crowd")
    bed.namespace.kubectl.apply(priority_class(name), quota(name, pods=4))
    until(lambda: has_status(bed, name), within=WITHIN, what="the quota to be counted")
    job = trainings.submit(bed.namespace, name, replicas=60, most=60, worker={"priorityClassName": name})

    message = job.wait_for_reason("TrainingJobRefused")["message"]

    assert f"{job.worker(4)} and 55 more can't be created: " in message
    assert f"exceeded quota: {name}" in message
    asked = [each.name for each in bed.proxy.writes() if str(each) == "POST pods"]
    assert list(dict.fromkeys(each for each in asked if each in names_of(job, 60))) == names_of(job, 5)
    wait_for_workers(job, 0, 1, 2, 3)
    job.scale(5)
    bed.namespace.kubectl.apply(quota(name, pods=5))
    job.wait_for("Running")
    assert job.status()["targetWorkers"] == names_of(job, 5)
    bed.namespace.ground.kubectl("delete", "priorityclass", name)


@promise(
    "A foreign pod with the name of a worker is left alone, reported, and stops no other change.", of="TrainingJob"
)
def test_a_pod_with_the_name_of_a_worker_is_reported_and_stops_nothing_but_this_worker(bed: Bed) -> None:
    job = running(bed)
    bed.namespace.kubectl.apply(bare_pod(job.worker(2)))
    job.scale(4)
    said = f"{job.worker(2)} can't be created: pod {job.worker(2)} exists and has no owner"
    assert said in job.wait_for_reason("ErrResourceExists")["message"]

    outcome = job.scale_in(f"{job.name}-in", toDelete={"podNames": [job.worker(1)]}).outcome()
    bed.namespace.kubectl("delete", "pod", job.worker(0), "--wait=false")
    job.wait_for_words(f"{job.worker(0)} was deleted")

    assert outcome == ("ScaleSucceeded", f"removed {job.worker(1)}")
    assert job.worker(3) in job.workers()
    job.scale(1)
    job.wait_until(lambda status: status["targetWorkers"] == [job.worker(0)], "the end of the scale-back")
    assert "pending" not in job.status()["scaling"]
    assert job.condition("Running")["reason"] == "TrainingJobWorkerFailed"
    bed.namespace.kubectl("delete", "pod", job.worker(2))


@promise("A ScaleIn with unknown names removes nothing and fails with the reason UnknownWorker.", of="TrainingJob")
def test_a_scale_in_that_names_no_worker_fails_with_the_reason_unknown_worker(bed: Bed) -> None:
    job = running(bed)

    made = job.scale_in(f"{job.name}-in", toDelete={"podNames": ["typo"]})

    assert made.outcome() == ("ScaleFailed", "nothing was removed; no worker of the job is named typo")
    assert made.status()["conditions"][-1]["reason"] == "UnknownWorker"
    assert job.workers() == names_of(job, 2)


@promise("The ScaleIns and ScaleOuts of a job are deleted with it.", of="TrainingJob")
def test_scalers_go_with_their_job(bed: Bed) -> None:
    job = running(bed)
    done = job.scale_out(f"{job.name}-out", 1)
    done.outcome()
    refused = job.scale_in(f"{job.name}-in", toDelete={"count": 9})
    refused.outcome()
    kubectl = bed.namespace.kubectl

    kubectl("delete", CRDS[0], job.name)

    def left() -> list[str]:
        found = kubectl.get(",".join(CRDS[1:]))
        return [each["metadata"]["name"] for each in found if each["spec"]["selector"]["name"] == job.name]

    until(lambda: not left(), within=WITHIN, what="no scaler of the job", instead=left)


def scale_of(job: Training) -> Any:
    path = f"{GROUP}/namespaces/{job.namespace.name}/trainingjobs/{job.name}/scale"
    return json.loads(job.namespace.kubectl("get", "--raw", path).stdout)


def asked_workers(bed: Bed, job: Training) -> list[str]:
    """The workers that the API server was asked to create, each as often as it was."""
    return [write.name for write in bed.writes_for(f"{job.name}-worker-") if str(write) == "POST pods"]


def names_of(job: Training, count: int) -> list[str]:
    return [job.worker(number) for number in range(count)]


def bare_pod(name: str) -> dict[str, Any]:
    """A pod without an owner."""
    spec = {"containers": [{"name": "it", "image": "none"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def priority_class(name: str) -> dict[str, Any]:
    """By it the quota is for one job alone."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 1,
        "preemptionPolicy": "Never",
    }


def quota(name: str, *, pods: int) -> dict[str, Any]:
    these = {"scopeName": "PriorityClass", "operator": "In", "values": [name]}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": {"pods": str(pods)}, "scopeSelector": {"matchExpressions": [these]}},
    }


def has_status(bed: Bed, name: str) -> bool:
    return "used" in bed.namespace.kubectl.get("resourcequota", name).get("status", {})
