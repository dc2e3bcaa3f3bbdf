"""The loop of a controller around one job, and an API server that answers as a test tells it to."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mpirt.controller.cluster.link import Away
from mpirt.controller.cluster.questions import Output, PodExecutor, Questions
from mpirt.controller.decisions.decide import JobPlanner
from mpirt.controller.dialects.base import Dialect
from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.dialects.training_job import TRAINING
from mpirt.controller.loop.reconcile import Access, Leader, Reconciler, Turn
from mpirt.controller.model.actions import Action, Create, Done, Outcome, WriteStatus
from mpirt.controller.model.reading import Body
from mpirt.controller.model.spec import JobKey
from mpirt.controller.monitoring.logs import LineLog, logfmt
from mpirt.controller.monitoring.metrics import Metrics
from mpirt.controller.observed.store import Store
from tests.unit.controller.jobs import SETTINGS, at, time
from tests.unit.controller.trainings import TrainingWorld, training_job
from tests.unit.controller.world import started


class NoPods(PodExecutor):
    """Nothing runs in pods here."""

    def __init__(self) -> None: ...

    def run(self, namespace: str, pod: str, container: str, command: tuple[str, ...], *, within: float) -> Output:
        raise Away(f"there is no {namespace}/{pod} {container} for {command} within {within}")


class Ground:
    """A controller's loop, and an API server that answers as it is told to."""

    def __init__(self, *bodies: Body, dialect: Dialect = MPI_JOB) -> None:
        self.seconds = 0.0
        job = bodies[0]["metadata"]
        self.key = JobKey(dialect.resource.kind, job["namespace"], job["name"])
        self.answers: dict[str, Outcome] = {}
        """By the kind of action and of object, and by the name where that matters, what is not simply done."""
        self.takes = 0.0
        """The seconds that an action takes."""
        self.meanwhile: dict[str, Callable[[], object]] = {}
        """What happens while an object of that name is created."""
        self.asked: list[Action] = []
        self.there: dict[tuple[str, str], Body] = {}
        """By kind and name what is read."""
        self.metrics = Metrics()
        self._store = Store([dialect.resource.kind], clock=self._clock)
        questions = Questions(NoPods(), clock=self._clock, answered=lambda _: None)
        log = LineLog(io.StringIO(), logfmt, lambda: datetime.now(UTC))
        access = Access(self, questions, log, self.metrics.acted)
        leader = Leader(self._clock, heard=lambda: at(-3600), may_act=lambda: True)
        self._reconciler = Reconciler([JobPlanner(dialect)], SETTINGS, self._store, access, leader)
        for number, body in enumerate(bodies, 1):
            self.see({**body, "metadata": {**body["metadata"], "resourceVersion": str(number)}})

    def see(self, body: Body) -> None:
        self._store.put(body["kind"], body)

    def lose(self, kind: str) -> None:
        """The one object of the kind is gone."""
        self._store.remove(kind, self.known(kind))

    def edit(self, **metadata: Any) -> None:
        """Somebody, or something, writes the job."""
        job = self.known(self.key.kind)
        version = str(int(job["metadata"]["resourceVersion"]) + 100)
        self.see({**job, "metadata": {**job["metadata"], "resourceVersion": version, **metadata}})

    def lose_pod(self, name: str) -> None:
        """This pod of the job is gone."""
        bodies = self._store.around(self.key, self._clock())["Pod"]
        self._store.remove("Pod", next(body for body in bodies if body["metadata"]["name"] == name))

    def remembered(self) -> list[Body]:
        """Pods of the job that went of late, and objects that stand in its way."""
        departed = [body for body, _ in self._store.departed(self.key, self._clock())]
        lent = [body for bodies in self._store.around(self.key, self._clock()).values() for body in bodies]
        return [*departed, *(body for body in lent if "lent" in body)]

    def lend(self, body: Body) -> None:
        """An object stands in the job's way."""
        self._store.lend(self.key, body["kind"], {**body, "lent": True}, at(self.seconds + 30))

    def known(self, kind: str) -> Body:
        """The one object of the kind that watches have told of."""
        [found] = self._store.around(self.key, self._clock())[kind]
        return found

    def look(self, seconds: float = 0.0) -> Turn:
        """So much later."""
        self.seconds += seconds
        self.asked.clear()
        return self._reconciler.look(self.key)

    def status(self) -> dict[str, Any]:
        """Condition, reason and message that were written in the last look, by type."""
        [written] = [action.status for action in self.asked if isinstance(action, WriteStatus)]
        return {each["type"]: (each["status"], each["reason"], each["message"]) for each in written["conditions"]}

    def written(self) -> Body:
        """The status that was written in the last look."""
        [written] = [action.status for action in self.asked if isinstance(action, WriteStatus)]
        return dict(written)

    def carry_out(self, action: Action, key: JobKey) -> Outcome:
        assert key == self.key
        self.asked.append(action)
        self.seconds += self.takes
        if isinstance(action, Create) and action.name in self.meanwhile:
            self.meanwhile[action.name]()
        kind = "status" if isinstance(action, WriteStatus) else action.kind
        words = f"{type(action).__name__} {kind}"
        return self.answers.get(f"{words} {action.name}") or self.answers.get(words, Done())

    def read(self, kind: str, namespace: str, name: str) -> Body | None:
        assert namespace == self.key.namespace
        return self.there.get((kind, name))

    def _clock(self) -> datetime:
        return at(self.seconds)


def ended(*, is_told: bool = False) -> Ground:
    """A job that has just ended, and whose workers are to go, once its status tells the end."""
    world = started(runPolicy={"cleanPodPolicy": "Running"})
    job = world.get("Job")
    job["status"] = {
        "succeeded": 1,
        "completionTime": time(30),
        "conditions": [{"type": "Complete", "status": "True"}],
    }
    world.seconds = 40
    for action in world.plan().actions if is_told else ():
        world.carry_out(action)
    return Ground(world.job, *world.objects.values())


def running(*, edited: bool = True) -> Ground:
    """A job that runs, and whose ConfigMap somebody may have edited."""
    world = started()
    if edited:
        world.get("ConfigMap")["data"]["hostfile"] = "edited"
    return Ground(world.job, *world.objects.values())


def begun(replicas: int) -> Ground:
    """A job whose status has just been written, and whose workers are to be created."""
    world = TrainingWorld(training_job(replicas=replicas, most=replicas))
    for action in world.plan().actions:
        world.carry_out(action)
    return Ground(world.job, *world.objects.values(), dialect=TRAINING)


def created(ground: Ground) -> list[str]:
    """The workers that were asked for in the last look."""
    return [each.name for each in ground.asked if isinstance(each, Create) and each.kind == "Pod"]
