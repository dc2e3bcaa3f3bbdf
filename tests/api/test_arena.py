"""
What Arena reads and writes of elastic jobs: it finds pods by the labels of their templates, the chief by its role,
judges a job by its phase, and scales it by objects of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from testbed.kube.wait import until
from testbed.plane.plane import Plane
from testbed.plane.stages import ENDS, NEVER, READY_AFTER
from tests.api.beds import Bed
from tests.api.controllers import job_name
from tests.api.recorder import Recorder, recording
from tests.api.straight import Straight
from tests.promises import promise
from tests.support import trainings
from tests.support.trainings import API_VERSION, CRDS, WITHIN, Body, Training

# What its two kinds of jobs have there.
APPS = ("etjob", "deepspeedjob")
UNIXTIME = 1795600000

_EVERYTHING = "configmaps,serviceaccounts,roles,rolebindings,services,jobs,pods"


@dataclass(frozen=True)
class Arena:
    """A job as Arena sees it."""

    job: Training
    app: str

    def pods(self) -> list[Body]:
        found: list[Body] = self.job.namespace.kubectl.get(
            "pods", f"--selector=release={self.job.name},app={self.app}"
        )
        return found

    def chiefs(self) -> list[Body]:
        return [pod for pod in self.pods() if pod["metadata"]["labels"].get("training-job-role") == "launcher"]

    def status(self) -> str:
        phases = {"Succeeded": "SUCCEEDED", "Failed": "FAILED", "Scaling": "SCALING"}
        chiefs, phase = self.chiefs(), self.job.phase()
        if phase == "Failed" and self.annotations().get("job-supervisor.kube-ai.io/job-status") == "timeout":
            return "MAX_WAIT_TIME_EXCEEDED"
        if phase in ("Succeeded", "Failed"):
            return phases[phase]
        if not chiefs or chiefs[0]["status"]["phase"] == "Pending":
            return "PENDING"
        return phases.get(phase, "RUNNING")

    def workers(self) -> int:
        """All pods of a job are counted, the dead ones, too."""
        return len(self.pods()) - 1

    def limits(self) -> tuple[int, int]:
        """The least and the most workers, as they were applied."""
        applied = json.loads(self.annotations()["kubectl.kubernetes.io/last-applied-configuration"])
        worker = applied["spec"]["etReplicaSpecs"]["worker"]
        return worker["minReplicas"], worker["maxReplicas"]

    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = self.job.body()["metadata"]["annotations"]
        return found

    def scale(self, kind: str, number: int) -> trainings.Scaler:
        """As `arena scalein` and `arena scaleout` do it by one worker."""
        name = f"{self.job.name}-{UNIXTIME + number}"
        wanted = {"toDelete" if kind == "ScaleIn" else "toAdd": {"count": 1}}
        spec = {"selector": {"name": self.job.name}, **wanted, "script": "", "timeout": 60}
        self.job.namespace.kubectl.apply(
            {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        )
        return trainings.Scaler(self.job, kind, name)

    def wait_for(self, status: str) -> None:
        self.job.wait(lambda: self.status() == status, status)


@pytest.fixture
def recorder(plane: Plane, bed: Bed) -> Iterator[Recorder]:
    with recording(Straight(plane), bed.namespace.name) as made:
        yield made


def submit(bed: Bed, app: str = APPS[0], *, max_wait_time: int = 0, **fields: Any) -> Arena:
    """A job of two workers as Arena's chart writes it."""
    name = job_name("arena")
    labels = {"app": app, "release": name, "createdBy": app.removesuffix("job").upper()}
    body = trainings.training_job(name, replicas=2, labels=labels, **fields)
    body["metadata"]["labels"] = labels
    if max_wait_time:
        body["metadata"]["annotations"] = {"job-supervisor.kube-ai.io/max-wait-time": str(max_wait_time)}
    bed.namespace.kubectl.apply(body)
    return Arena(Training(bed.namespace, name), app)


def running(bed: Bed, app: str = APPS[0], **fields: Any) -> Arena:
    arena = submit(bed, app, **fields)
    arena.wait_for("RUNNING")
    return arena


@promise("TrainingJobs of Arena run, and Arena reads their state, pods and limits.", of="neighbours")
@pytest.mark.parametrize("app", APPS)
def test_pods_are_found_by_the_labels_of_their_templates_and_the_chief_by_its_role(bed: Bed, app: str) -> None:
    arena = running(bed, app)
    job = arena.job

    [chief] = arena.chiefs()
    assert chief["metadata"]["name"].startswith(f"{job.name}-launcher")
    names = {pod["metadata"]["name"] for pod in arena.pods()}
    assert names == {job.worker(0), job.worker(1), chief["metadata"]["name"]}
    assert arena.workers() == 2


@promise("TrainingJobs of Arena run, and Arena reads their state, pods and limits.", of="neighbours")
def test_a_job_is_pending_until_its_chief_runs(bed: Bed) -> None:
    arena = submit(bed, annotations={READY_AFTER: NEVER})
    until(lambda: len(arena.job.pods()) == 2, within=WITHIN, what="its workers")
    assert (arena.chiefs(), arena.status(), arena.job.phase()) == ([], "PENDING", "Created")

    arena.job.namespace.kubectl(
        "annotate", "pods", f"--selector=release={arena.job.name}", f"{READY_AFTER}=0s", "--overwrite"
    )

    arena.wait_for("RUNNING")


def statuses(recorder: Recorder, name: str) -> list[dict[str, Any]]:
    """Every status of the job that the watches have delivered."""
    return [each.body.get("status", {}) for each in recorder.told() if each.name == name]


def phases(recorder: Recorder, name: str) -> list[str | None]:
    """The phases that it came into, one after the other."""
    found = [status.get("phase") for status in statuses(recorder, name)]
    return [phase for phase, before in zip(found[1:], found, strict=False) if phase != before]


@promise("The scalein and scaleout of Arena change the workers of its jobs.", of="neighbours")
def test_a_job_is_scaled_by_objects_named_after_it_and_the_time(bed: Bed, recorder: Recorder) -> None:
    arena = running(bed)
    name = arena.job.name

    added = arena.scale("ScaleOut", 0).outcome()
    until(lambda: arena.workers() == 3, within=WITHIN, what="three workers")
    removed = arena.scale("ScaleIn", 1).outcome()
    until(lambda: arena.workers() == 2, within=WITHIN, what="two workers")

    assert added == ("ScaleSucceeded", f"added {name}-worker-2")
    assert removed == ("ScaleSucceeded", f"removed {name}-worker-2")
    ends = ["Scaling", "Running", "Scaling", "Running"]
    until(
        lambda: phases(recorder, name)[-4:] == ends,
        within=WITHIN,
        what=str(ends),
        instead=lambda: phases(recorder, name),
    )
    told = statuses(recorder, name)
    scalers = dict.fromkeys(status["currentScaler"] for status in told if status.get("currentScaler"))
    where = f"{bed.namespace.name}/{name}"
    assert list(scalers) == [f"ScaleOut:{where}-{UNIXTIME}", f"ScaleIn:{where}-{UNIXTIME + 1}"]


@promise("TrainingJobs of Arena run, and Arena reads their state, pods and limits.", of="neighbours")
def test_the_limits_stay_where_arena_looks_for_them(bed: Bed) -> None:
    arena = running(bed, least=2, most=3)

    arena.scale("ScaleOut", 0).outcome()

    assert arena.limits() == (2, 3)


@promise("At the end of a TrainingJob cleanPodPolicy decides which pods stay.", of="TrainingJob")
@pytest.mark.parametrize(
    ("policy", "chiefs", "workers"),
    [
        pytest.param({}, 1, 0, id="without a policy only the chief stays"),
        pytest.param({"cleanPodPolicy": "Running"}, 1, 0, id="Running: only the chief stays"),
        pytest.param({"cleanPodPolicy": "All"}, 0, 0, id="All: none stays"),
        pytest.param({"cleanPodPolicy": "None"}, 1, 2, id="None: all stay"),
    ],
)
def test_a_job_that_has_succeeded_keeps_the_pods_of_its_policy(
    bed: Bed, policy: dict[str, str], chiefs: int, workers: int
) -> None:
    arena = running(bed, **policy)

    arena.job.let_end()
    arena.wait_for("SUCCEEDED")

    def left() -> tuple[int, int]:
        return len(arena.chiefs()), len(arena.job.pods())

    until(lambda: left() == (chiefs, workers), within=WITHIN, what="the pods of the policy", instead=left)


def test_a_job_has_failed_when_its_chief_has(bed: Bed) -> None:
    arena = running(bed)

    selector = f"--selector=release={arena.job.name},training-job-role=launcher"
    arena.job.namespace.kubectl("annotate", "pods", selector, f"{ENDS}=1", "--overwrite")

    arena.wait_for("FAILED")


@promise("Arena's annotation max-wait-time fails a job that waits longer for its workers.", of="neighbours")
def test_a_job_that_waits_too_long_for_resources_has_exceeded_its_time(bed: Bed) -> None:
    arena = submit(bed, max_wait_time=3, worker={"nodeSelector": {"no-such": "node"}})

    arena.wait_for("MAX_WAIT_TIME_EXCEEDED")

    arena.job.wait(lambda: not arena.pods(), "its workers to be gone")
    failed = next(each for each in arena.job.body()["status"]["conditions"] if each["type"] == "Failed")
    assert failed["reason"] == "MaxWaitTimeExceeded"
    assert "max-wait-time=3 for its workers; 0 of 2 workers are Ready" in failed["message"]


@promise("A TrainingJob that is deleted leaves nothing behind.", of="TrainingJob")
def test_a_job_that_is_deleted_leaves_nothing(bed: Bed) -> None:
    arena = running(bed)
    kubectl, name = arena.job.namespace.kubectl, arena.job.name
    arena.scale("ScaleOut", 0).outcome()

    kubectl("delete", CRDS[0], name)

    def left() -> list[str]:
        found = kubectl.get(",".join([_EVERYTHING, *CRDS]))
        return [f"{each['kind']} {each['metadata']['name']}" for each in found if name in each["metadata"]["name"]]

    until(lambda: not left(), within=WITHIN, what="nothing of the job", instead=left)
