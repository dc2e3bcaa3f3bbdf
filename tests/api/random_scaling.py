"""
People and programs that change the workers of one TrainingJob, at random and without waiting for each other.

Owns: what they ask for, and in what order. Who asks next waits for events at most, never for a time, so a seed
gives the same requests, while what they meet differs from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from random import Random
from typing import Any

from tests.api.recorder import Recorder, is_worker
from tests.api.straight import Denied, Straight
from tests.api.trainings import GROUP, PLURALS, Body, scaler

# Several times what the longest way takes: workers that died are replaced after a while, which grows.
WITHIN = 300.0
OVER = ("ScaleSucceeded", "ScaleFailed")

# How often the next one asks only when the one before has got an outcome.
_WAITS = 0.4
# How often a ScaleIn names an unknown worker beside others.
_UNKNOWN = 0.3
# A third worker that dies would be replaced a minute later only.
_MOST_DEATHS = 2


class Kind(StrEnum):
    """What may be asked for."""

    IN_BY_COUNT = "ScaleIn by count"
    IN_BY_NAME = "ScaleIn by name"
    IN_OF_NOBODY = "ScaleIn of an unknown or earlier worker"
    IN_OF_DEAD = "ScaleIn of a dead worker"
    OUT = "ScaleOut"
    SCALE = "kubectl scale"
    WITHDRAWN = "scaler that is deleted"
    DEATH = "worker that is deleted"


_WEIGHTS = {
    Kind.IN_BY_COUNT: 4,
    Kind.IN_BY_NAME: 4,
    Kind.IN_OF_NOBODY: 2,
    Kind.IN_OF_DEAD: 1,
    Kind.OUT: 6,
    Kind.SCALE: 4,
    Kind.WITHDRAWN: 3,
    Kind.DEATH: 1,
}


def is_over(body: Body | None) -> bool:
    """Whether a scaler has an outcome."""
    return body is not None and body.get("status", {}).get("phase") in OVER


@dataclass(frozen=True)
class NamespaceApi:
    """Where it all happens."""

    way: Straight
    recorder: Recorder
    namespace: str

    def path(self, plural: str, name: str = "", *, group: str = GROUP) -> str:
        return f"{group}/namespaces/{self.namespace}/{plural}{f'/{name}' if name else ''}"


@dataclass
class Requesters:
    """Those who ask for something of one job."""

    api: NamespaceApi
    job: str
    chance: Random
    least: int
    most: int
    asked: list[Kind] = field(default_factory=list)
    killed: set[str] = field(default_factory=set)
    """The uids of the workers that they have deleted themselves."""
    _written: dict[str, int] = field(default_factory=dict)
    """The version of their last write of each kind."""

    def start(self) -> None:
        """Wait until the job runs."""
        self._wait(lambda: bool(self.status().get("phase") == "Running"), "Running")

    def run(self, operations: int) -> None:
        """Ask for so much, and see to it that all of it comes to an end."""
        for number in range(operations):
            kind = self._next()
            self.asked.append(kind)
            asked = self._ask(kind, f"{self.job}-{number}")
            if asked and self.chance.random() < _WAITS:
                self._wait(partial(self._is_through, *asked), f"an outcome of {asked[1]}")
        # Before the last writes are received, all may look settled.
        self._wait(lambda: self._is_told() and self.is_settled(), "the end of all changes")

    def status(self) -> Body:
        found: Body = (self.api.recorder.now("TrainingJob", self.job) or {}).get("status", {})
        return found

    def is_settled(self) -> bool:
        """Whether nothing is left to be done, and everybody agrees on the workers."""
        body = self.api.recorder.now("TrainingJob", self.job)
        assert body is not None
        wanted, scaling = body["status"]["targetWorkers"], body["status"]["scaling"]
        return (
            all(map(is_over, self.scalers()))
            and not scaling.keys() & {"change", "pending"}
            and body["spec"]["etReplicaSpecs"]["worker"]["replicas"] == scaling["replicas"] == len(wanted)
            and sorted(pod["metadata"]["name"] for pod in self._pods()) == sorted(wanted)
            and all(map(_is_alive, self._pods()))
        )

    def scalers(self) -> list[Body]:
        return [one for kind in PLURALS for one in self.api.recorder.all_of(kind, self.job)]

    # -- what is asked for ----------------------------------------------------------------------------------------

    def _next(self) -> Kind:
        deadly = {Kind.DEATH, Kind.IN_OF_DEAD}
        has_died = sum(kind in deadly for kind in self.asked) >= _MOST_DEATHS
        allowed = [kind for kind in Kind if not (has_died and kind in deadly)]
        return self.chance.choices(allowed, [_WEIGHTS[kind] for kind in allowed])[0]

    def _ask(self, kind: Kind, name: str) -> tuple[str, str] | None:
        """Ask for it; returns the scaler that was made, if one was."""
        match kind:
            case Kind.IN_BY_COUNT:
                return self._scale_in(name, count=self.chance.randint(1, 3))
            case Kind.IN_BY_NAME | Kind.IN_OF_NOBODY | Kind.IN_OF_DEAD:
                return self._scale_in(name, podNames=self._named(kind))
            case Kind.OUT:
                return self._scaler("ScaleOut", name, toAdd={"count": self.chance.randint(1, 3)})
            case Kind.SCALE:
                replicas = self.chance.randint(self.least, self.most)
                self._note(
                    "TrainingJob", self.api.way.patch(f"{self._own()}/scale", {"spec": {"replicas": replicas}})
                )
            case Kind.WITHDRAWN:
                self._withdraw(name)
            case Kind.DEATH:
                self._kill()
        return None

    def _named(self, kind: Kind) -> list[str]:
        if kind is Kind.IN_OF_DEAD:
            return [self._kill()]
        if kind is Kind.IN_OF_NOBODY:
            return [self._nobody()]
        workers = self.status()["targetWorkers"]
        chosen = self.chance.sample(workers, self.chance.randint(1, 2))
        return [*chosen, self._nobody()] if self.chance.random() < _UNKNOWN else chosen

    def _scale_in(self, name: str, **to_delete: Any) -> tuple[str, str]:
        return self._scaler("ScaleIn", name, toDelete=to_delete)

    def _scaler(self, kind: str, name: str, **spec: Any) -> tuple[str, str]:
        self._note(kind, self.api.way.create(self.api.path(PLURALS[kind]), scaler(kind, name, self.job, spec)))
        return kind, name

    def _withdraw(self, name: str) -> None:
        """Ask for a change and delete what asked for it as soon as that is begun, or over."""
        kind = self.chance.choice(list(PLURALS))
        what: Mapping[str, Any] = {"count": self.chance.randint(1, 2)}
        self._scaler(kind, name, **{"toDelete" if kind == "ScaleIn" else "toAdd": what})
        self._wait(lambda: self._is_begun(kind, name), f"{name} to begin")
        self.api.way.delete(self.api.path(PLURALS[kind], name))

    def _kill(self) -> str:
        """Delete a worker's pod; returns its name."""
        pod = self.chance.choice(self._pods())
        self.killed.add(pod["metadata"]["uid"])
        name = str(pod["metadata"]["name"])
        with suppress(Denied):
            self._note("Pod", self.api.way.delete(self.api.path("pods", name, group="/api/v1")))
        return name

    def _note(self, kind: str, answer: Body) -> None:
        """Remember a write by its answer; that of a deletion may be a Status without a version."""
        if version := answer["metadata"].get("resourceVersion"):
            self._written[kind] = int(version)

    def _is_told(self) -> bool:
        return all(self.api.recorder.has_come_to(*write) for write in self._written.items())

    def _nobody(self) -> str:
        """A name that no worker has, or has any more."""
        numbers = {name.rpartition("-")[2] for name in self.status()["targetWorkers"]}
        earlier = [str(number) for number in range(self.most) if str(number) not in numbers]
        return f"{self.job}-worker-{self.chance.choice([*earlier, '9999'])}"

    # -- what is seen ---------------------------------------------------------------------------------------------

    def _own(self) -> str:
        return self.api.path("trainingjobs", self.job)

    def _pods(self) -> list[Body]:
        return [pod for pod in self.api.recorder.all_of("Pod", self.job) if is_worker(pod)]

    def _is_begun(self, kind: str, name: str) -> bool:
        body = self.api.recorder.now(kind, name)
        return is_over(body) or (body is not None and body.get("status", {}).get("phase") == "Scaling")

    def _is_through(self, kind: str, name: str) -> bool:
        return is_over(self.api.recorder.now(kind, name))

    def _wait(self, question: Callable[[], bool], what: str) -> None:
        self.api.recorder.wait(
            self.job, question, within=WITHIN, what=f"{what} of {self.job}", instead=self._around
        )

    def _around(self) -> Body:
        return {
            "status": self.status(),
            "scalers": {one["metadata"]["name"]: one.get("status") for one in self.scalers()},
            "pods": {pod["metadata"]["name"]: pod["status"].get("phase") for pod in self._pods()},
        }


def _is_alive(pod: Body) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") == "Running"
