"""TrainingJobs, their ScaleIns and ScaleOuts, and a cluster in which they are carried out."""

from __future__ import annotations

from typing import Any

from mpirt.controller.dialects.training_job import TRAINING
from mpirt.controller.model.actions import Action, Answer
from tests.unit.controller.jobs import Body, at, container, template, time
from tests.unit.controller.pods import launcher, running
from tests.unit.controller.world import World, writes

UID = "uid-of-elastic"


def training_job(
    *,
    replicas: int | None = 2,
    least: int | None = 1,
    most: int | None = 9,
    worker: Body | None = None,
    launcher: Body | None = None,
    restart: str = "",
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Body:
    """The job of et-operator's example: two workers, at least one, at most nine."""
    limits = {"replicas": replicas, "minReplicas": least, "maxReplicas": most, "restartPolicy": restart}
    return {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {
            "name": "elastic",
            "namespace": "ml",
            "uid": UID,
            "generation": 1,
            "creationTimestamp": time(0),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "etReplicaSpecs": {
                "launcher": {"template": launcher or template(container("launcher", command=["horovodrun"]))},
                "worker": {
                    "template": worker or template(container("worker")),
                    **{name: value for name, value in limits.items() if value is not None},
                },
            },
            **spec,
        },
    }


def scaler(kind: str, name: str, spec: Body, *, created: float, annotations: Body | None = None) -> Body:
    return {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": f"uid-of-{name}",
            "creationTimestamp": time(created),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {"selector": {"name": "elastic"}, **spec},
    }


class TrainingWorld(World):
    """One TrainingJob. Its pods become Ready when a test says so; one that is deleted is gone at once."""

    def __init__(self, job: Body | None = None) -> None:
        super().__init__(job or training_job(), dialect=TRAINING)

    # -- the job's pods -------------------------------------------------------------------------------------------

    def workers(self) -> list[str]:
        """The names of the workers' pods."""
        return [name for (kind, name), body in self.objects.items() if kind == "Pod" and _is_worker(body)]

    def pod(self, name: str) -> Body:
        return self.objects["Pod", name]

    def held(self) -> dict[str, str]:
        """The workers that are no hosts, and why."""
        found = {
            name: self.pod(name)["metadata"]["annotations"].get("mpirt.dev/draining") for name in self.workers()
        }
        return {name: why for name, why in found.items() if why}

    def ready(self, *names: str) -> None:
        """These workers become Ready; without names, all."""
        for name in names or self.workers():
            body = self.pod(name)
            body["metadata"].setdefault("creationTimestamp", time(self.seconds))
            body["spec"]["nodeName"] = "node-1"
            body["status"] = {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}],
                "containerStatuses": [running("worker", since=self.seconds)],
            }

    def fails(self, name: str, code: int = 1, reason: str = "Error") -> None:
        """The worker's pod has failed."""
        ended = {"exitCode": code, "reason": reason, "finishedAt": time(self.seconds)}
        self.pod(name)["status"] = {
            "phase": "Failed",
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [{"name": "worker", "state": {"terminated": ended}}],
        }

    def vanishes(self, name: str) -> None:
        """Somebody has deleted the worker's pod, and it is gone."""
        self.departed.append((self.objects.pop(("Pod", name)), self.now))

    def idle(self, *names: str) -> None:
        """No command has run in these workers for some seconds."""
        for name in names:
            uid = self.pod(name)["metadata"]["uid"]
            self.answers[uid] = Answer(self.now, 0, idle_since=at(self.seconds - 5))

    def busy(self, name: str, commands: int = 1) -> None:
        self.answers[self.pod(name)["metadata"]["uid"]] = Answer(self.now, commands)

    def run(self) -> None:
        """From nothing to a running launcher."""
        self.settle()
        self.seconds += 5
        self.ready()
        self.settle()
        self.launcher_starts()

    def launcher_starts(self, name: str = "elastic-launcher-1") -> None:
        self.seconds += 5
        job = self.get("Job")
        body = launcher(
            name,
            owner=job["metadata"]["uid"],
            made_by={"kind": "Job", "name": "elastic-launcher"},
            created=self.seconds,
            node="node-2",
            containers=[running("launcher", since=self.seconds)],
        )
        body["metadata"]["labels"] |= {
            "training.kubeflow.org/job-name": "elastic",
            "mpirt.dev/job-kind": "TrainingJob",
        }
        body["metadata"]["annotations"] = dict(job["spec"]["template"]["metadata"]["annotations"])
        self.get("Job")["status"] = {"active": 1}
        self.objects["Pod", name] = body
        self.seconds += 5
        self.settle()

    def launcher_fails(self) -> None:
        self.objects["Pod", "elastic-launcher-1"]["status"] = {
            "phase": "Failed",
            "containerStatuses": [
                {"name": "launcher", "state": {"terminated": {"exitCode": 1, "finishedAt": time(self.seconds)}}}
            ],
        }

    # -- what people ask for --------------------------------------------------------------------------------------

    def scale_in(
        self, name: str = "in", *, force: bool = False, timeout: int = 60, **to_delete: Any
    ) -> list[Action]:
        spec = {"toDelete": to_delete, "timeout": timeout} if to_delete else {"timeout": timeout}
        annotations = {"mpirt.dev/force": "true"} if force else None
        self.seconds += 1
        self.objects["ScaleIn", name] = scaler(
            "ScaleIn", name, spec, created=self.seconds, annotations=annotations
        )
        return self.settle()

    def scale_out(self, count: int, name: str = "out", *, timeout: int = 60) -> list[Action]:
        spec = {"toAdd": {"count": count}, "timeout": timeout}
        self.seconds += 1
        self.objects["ScaleOut", name] = scaler("ScaleOut", name, spec, created=self.seconds)
        return self.settle()

    def scale(self, replicas: int) -> list[Action]:
        """`kubectl scale`."""
        self.job["spec"]["etReplicaSpecs"]["worker"]["replicas"] = replicas
        self.seconds += 1
        return self.settle()

    # -- what is said ---------------------------------------------------------------------------------------------

    @property
    def status(self) -> Body:
        found: Body = self.job["status"]
        return found

    @property
    def replicas(self) -> int:
        return int(self.job["spec"]["etReplicaSpecs"]["worker"]["replicas"])

    def wanted(self) -> list[str]:
        """The numbers of the workers that the job wants."""
        return [name.rpartition("-")[2] for name in self.status["targetWorkers"]]

    def outcome(self, name: str) -> tuple[str, str]:
        """The phase of a ScaleIn or ScaleOut, and the message of its last condition."""
        body = next(body for (kind, of), body in self.objects.items() if kind.startswith("Scale") and of == name)
        return body["status"]["phase"], body["status"]["conditions"][-1]["message"]

    def hosts(self) -> list[str]:
        """The hosts in the ConfigMap."""
        return str(self.get("ConfigMap")["data"]["hostfile"]).split()


def _is_worker(body: Body) -> bool:
    return bool(body["metadata"]["labels"].get("training.kubeflow.org/job-role") == "worker")


def pods_of(actions: list[Action]) -> list[str]:
    """What was done to workers' pods."""
    return [
        f"{what.split()[0]} {action.name}"
        for what, action in zip(writes(actions), actions, strict=True)
        if action.kind == "Pod" and "-worker-" in action.name and not what.startswith("try")
    ]


def running_job(replicas: int = 2, **job: Any) -> TrainingWorld:
    """A job that runs."""
    world = TrainingWorld(training_job(replicas=replicas, **job))
    world.run()
    return world
