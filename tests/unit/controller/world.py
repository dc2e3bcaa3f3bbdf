"""
A cluster made of dictionaries: what plans are carried out on in unit tests.

It does what an API server does with each action, uids, generations and JSON patches included, and counts writes.
What Kubernetes' own controllers would do, a test says.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mpirt.controller.decisions.decide import JobPlanner
from mpirt.controller.dialects.base import Dialect
from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.model.actions import (
    Action,
    Answer,
    Create,
    Delete,
    Find,
    Patch,
    Plan,
    Rejection,
    WriteStatus,
)
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION
from mpirt.controller.model.spec import Settings
from mpirt.controller.observed.nodes import Signal
from mpirt.controller.observed.observe import Circumstances
from mpirt.controller.observed.slim import slim
from tests.unit.controller import pods
from tests.unit.controller.jobs import REVISION, SETTINGS, Body, at, mpi_job, time


class World:
    """One job and everything of its kind around it."""

    def __init__(
        self, job: Body | None = None, *, settings: Settings = SETTINGS, dialect: Dialect = MPI_JOB
    ) -> None:
        self.job: Body = copy.deepcopy(job or mpi_job())
        self.is_deleted = False
        """Whether the job object is gone."""
        self.dialect = dialect
        self.answers: dict[str, Answer] = {}
        """What pods say of their use, by their uids."""
        self.nodes: dict[str, Signal] = {}
        """The nodes that are about to go."""
        self.sees_nodes = True
        """Whether the controller may list nodes."""
        self.settings = settings
        self.objects: dict[tuple[str, str], Body] = {}
        self.events: list[tuple[str, str, str]] = []
        self.rejections: list[Rejection] = []
        self.accepted: set[str] = set()
        """The digests of the dry runs that were accepted."""
        self.refuse: dict[str, Rejection] = {}
        """By the kind or the name of what is not taken."""
        self.departed: list[tuple[Body, datetime]] = []
        """Pods that others have taken the places of, and when."""
        self.gone_jobs: list[Body] = []
        """The launcher Job that was deleted, as it was before; empty if nobody has seen that."""
        self.seconds = 0.0
        self.heard: float | None = None
        """Since when the API server has been heard of without a break."""
        self.writes = 0
        self.done: list[Action] = []
        self.made: Counter[str] = Counter()
        self._told: set[str] = set()

    @property
    def now(self) -> datetime:
        return at(self.seconds)

    # -- the controller -------------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """What would be done now."""
        cached: dict[str, list[Body]] = {}
        for (kind, _), body in self.objects.items():
            cached.setdefault(kind, []).append(slim(kind, body))
        cached["gone Job"] = [slim("Job", body) if body else body for body in self.gone_jobs]
        heard = None if self.heard is None else at(self.heard)
        around = Circumstances(
            self.settings,
            self.now,
            departed=self.departed,
            accepted=frozenset(self.accepted),
            answers=self.answers,
            nodes=self.nodes if self.sees_nodes else None,
            heard=heard,
        )
        return JobPlanner(self.dialect).decide(self.job, cached, self.rejections, around)

    def settle(self) -> list[Action]:
        """Plan and carry out until there is nothing to do."""
        done: list[Action] = []
        for _ in range(10):
            if self.is_deleted:
                return done
            actions = self.plan().actions
            if not actions:
                return done
            for action in actions:
                done.append(action)
                if not self.carry_out(action):
                    break
        raise AssertionError(f"still something to do: {actions}")

    def later(self, seconds: float) -> list[Action]:
        """The same, so much later."""
        self.seconds += seconds
        return self.settle()

    def carry_out(self, action: Action) -> bool:
        """As an API server would. False where the rest of the plan has to be made anew."""
        self.writes += 1
        self.done.append(action)
        match action:
            case Create():
                return self._create(action)
            case Patch():
                self._patch(self._there(action.kind, action.name), action.operations)
            case Delete():
                self._delete(action)
            case Find():
                assert (action.kind, action.name) not in self.objects
                self.gone_jobs.append({})
            case WriteStatus():
                body = self._there(action.kind, action.name)
                assert action.uid == body["metadata"]["uid"]
                body["status"] = copy.deepcopy(dict(action.status))
        return True

    def _there(self, kind: str, name: str) -> Body:
        """The object of that kind and name; the job is one, too."""
        return self.job if kind == self.job["kind"] else self.objects[kind, name]

    def _create(self, action: Create) -> bool:
        rejection = self.refuse.get(action.kind) or self.refuse.get(action.name)
        if rejection is not None:
            self.rejections.append(Rejection(action.kind, action.digest, rejection.message, rejection.final))
            return False
        if action.kind == "Event":
            if action.name not in self._told:
                self._told.add(action.name)
                body = action.manifest
                self.events.append((body["type"], body["reason"], body["message"]))
            return True
        if action.dry_run:
            self.accepted.add(action.digest)
        else:
            assert (action.kind, action.name) not in self.objects
            self.put(copy.deepcopy(dict(action.manifest)))
        return True

    def _delete(self, action: Delete) -> None:
        if action.kind == self.job["kind"]:
            self.is_deleted = True
            return
        assert self.objects[action.kind, action.name]["metadata"]["uid"] == action.uid
        body = self.objects.pop((action.kind, action.name))
        uid = body["metadata"]["uid"]
        for key, other in list(self.objects.items()):
            owners = other["metadata"].get("ownerReferences", [])
            others = [owner for owner in owners if owner["uid"] != uid]
            if action.orphans:
                other["metadata"]["ownerReferences"] = others
            elif owners and not others:
                del self.objects[key]

    def _patch(self, body: Body, operations: Sequence[Any]) -> None:
        before = copy.deepcopy(body.get("spec"))
        for operation in operations:
            *path, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"][1:].split("/")]
            place: Any = body
            for part in path:
                place = place[int(part)] if isinstance(place, list) else place[part]
            match operation["op"]:
                case "test":
                    assert place[last] == operation["value"]
                case "add" if last == "-":
                    place.append(copy.deepcopy(operation["value"]))
                case "add" | "replace":
                    place[last] = copy.deepcopy(operation["value"])
                case "remove":
                    del place[last]
        if body.get("spec") != before:
            body["metadata"]["generation"] += 1

    # -- everybody else -------------------------------------------------------------------------------------------

    def put(self, body: Body) -> Body:
        """An object is there."""
        metadata = body["metadata"]
        if body["kind"] == "Job":
            self.gone_jobs.clear()
            metadata.setdefault("creationTimestamp", time(self.seconds))
        self.made[body["kind"]] += 1
        again = f"-{self.made[body['kind']]}" if self.made[body["kind"]] > 1 else ""
        metadata.setdefault("uid", f"uid-of-{body['kind']}{again}")
        metadata.setdefault("generation", 1)
        self.objects[body["kind"], metadata["name"]] = body
        return body

    def lose_launcher_job(self) -> Body:
        """Somebody has deleted the launcher Job, and a watch has reported it."""
        job = self.get("Job")
        self.gone_jobs = [job]
        del self.objects["Job", job["metadata"]["name"]]
        return job

    def get(self, kind: str) -> Body:
        """The one object of the kind."""
        return next(body for (of_kind, _), body in self.objects.items() if of_kind == kind)

    def kinds(self) -> list[str]:
        """What exists, without pods."""
        return sorted(kind for kind, _ in self.objects if kind != "Pod")

    def edit(self, kind: str, **spec: Any) -> None:
        """Somebody edits an object's spec by hand."""
        body = self.get(kind)
        body["spec"] = {**body["spec"], **spec}
        body["metadata"]["generation"] += 1

    def change(self, **spec: Any) -> None:
        """The user edits the job."""
        self.job["spec"] = {**self.job["spec"], **spec}

    def workers_are(self, *bodies: Body, revision: str = REVISION) -> None:
        """The StatefulSet has these pods, of its template unless they say otherwise."""
        workers = self.get("StatefulSet")
        template = workers["metadata"]["annotations"][TEMPLATE_ANNOTATION]
        workers["status"] = {
            "observedGeneration": workers["metadata"]["generation"],
            "updateRevision": revision,
            "replicas": len(bodies),
        }
        for key in [key for key, body in self.objects.items() if _has_role(body, "worker")]:
            del self.objects[key]
        for body in bodies:
            body["metadata"]["ownerReferences"] = [pods.owner_of("worker", workers)]
            body["metadata"].setdefault("annotations", {TEMPLATE_ANNOTATION: template})
            self.put(body)

    def worker_went(self, body: Body) -> None:
        """This pod of the StatefulSet is no more, and nobody looked while it was on its way out."""
        body["metadata"]["ownerReferences"] = [pods.owner_of("worker", self.get("StatefulSet"))]
        self.departed.append((body, self.now))

    def launcher_is(self, *bodies: Body, **status: Any) -> None:
        """The launcher Job has these pods, and this status."""
        job = self.get("Job")
        job["status"] = status
        for key in [key for key, body in self.objects.items() if _is_launcher_of(body, job)]:
            del self.objects[key]
        for body in bodies:
            body["metadata"]["ownerReferences"] = [pods.owner_of("launcher", job)]
            self.put(body)

    def start(self, **launcher: Any) -> None:
        """Bring the job from nothing to a running launcher."""
        self.settle()
        self.seconds += 5
        self.workers_are(pods.worker(0), pods.worker(1))
        self.settle()
        self.seconds += 5
        self.launcher_is(pods.launcher(containers=[pods.running("mpi", since=12)], **launcher), active=1)
        self.seconds += 5
        self.settle()

    def finish(self, kind: str = "Complete", *, reason: str = "", message: str = "", **status: Any) -> None:
        """The launcher Job comes to its end."""
        self.seconds += 5
        row = {"type": kind, "status": "True", "reason": reason, "message": message}
        row["lastTransitionTime"] = time(self.seconds)
        self.get("Job")["status"] = {"conditions": [row], **status}
        self.settle()
        if kind == "Complete":
            # A success is told when nobody has reported the loss of a worker by then.
            self.later(3)

    # -- what is said ---------------------------------------------------------------------------------------------

    def condition(self, kind: str) -> tuple[bool, str, str]:
        """Status, reason and message; an error if it isn't there."""
        row = next(row for row in self.job["status"]["conditions"] if row["type"] == kind)
        return row["status"] == "True", row["reason"], row["message"]

    def attempts(self) -> list[Body]:
        """The attempts of the job in its status."""
        found: list[Body] = self.job["status"]["attempts"]
        return found

    def state(self) -> str:
        """What kubectl shows: the type of the last condition."""
        return str(self.job["status"]["conditions"][-1]["type"])

    def told(self) -> list[str]:
        """The reasons of the events, in order."""
        return [reason for _, reason, _ in self.events]


RUNS = "Launcher pod train-launcher-1 runs on node node-1; "
"""How the condition of a job begins whose launcher runs."""


def settled(job: Body | None = None, **more: Any) -> World:
    """A job for which all is done that there is to do at first."""
    world = World(job, **more)
    world.settle()
    return world


def with_workers(*workers: Body, job: Body | None = None) -> World:
    """The same with these workers, by default with two that are Ready."""
    world = settled(job)
    world.workers_are(*(workers or (pods.worker(0), pods.worker(1))))
    return world


def started(**spec: Any) -> World:
    """A job whose launcher runs."""
    world = World(mpi_job(**spec))
    world.start()
    return world


RERUN, RERUN_WHEN_DELETED = "mpirt.dev/rerun", "mpirt.dev/rerun-when-deleted"


def succeeded(policy: str = "None", **annotations: str) -> World:
    """A job that has succeeded."""
    world = World(mpi_job(runPolicy={"cleanPodPolicy": policy}))
    annotate(world, **annotations)
    world.start()
    done = pods.ended("mpi", 0, "Completed")
    world.launcher_is(pods.launcher(phase="Succeeded", conditions={}, containers=[done]), succeeded=1)
    world.finish(succeeded=1)
    world.later(15)
    return world


ONCE = {"backoffLimit": 0}
"""The run policy of a job whose first attempt is the last one."""


def annotate(world: World, **annotations: str) -> None:
    world.job["metadata"].setdefault("annotations", {}).update(annotations)


def _has_role(body: Body, role: str) -> bool:
    labels = body["metadata"].get("labels", {})
    return bool(body["kind"] == "Pod" and labels.get("training.kubeflow.org/job-role") == role)


def _is_launcher_of(body: Body, job: Body) -> bool:
    owners = [owner["uid"] for owner in body["metadata"].get("ownerReferences", [])]
    return _has_role(body, "launcher") and (not owners or job["metadata"]["uid"] in owners)


def writes(actions: Sequence[Action]) -> list[str]:
    """Actions in a few words."""
    return [_word(action) for action in actions]


def _word(action: Action) -> str:
    match action:
        case Create(dry_run=True):
            return f"try {action.kind}"
        case Create(once=True):
            return f"tell {action.manifest['reason']}"
        case WriteStatus():
            return "status"
        case _:
            return f"{type(action).__name__.lower()} {action.kind}"
