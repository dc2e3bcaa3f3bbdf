"""
A tenant who wants nothing but that his jobs end, and how long each of them takes.

Owns: which jobs he has, making them, and the moments at which the API server says that they are over. Beside them
runs one plain Job of Kubernetes after another, to which the controller does nothing: what that takes is the
machine's doing.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice

from testbed.plane.stages import ENDS
from tests.api import hostile_objects
from tests.api.gputasks import MODEL, manifest
from tests.api.hostile_objects import Body
from tests.api.straight import Straight

_PATHS = {**hostile_objects.JOB_KINDS, "Job": "/apis/batch/v1 jobs"}
_WORKERS = 4
_PULSE, _PULSE_WITHIN = "pulse", 120.0


@dataclass(frozen=True)
class Took:
    """How long all jobs took, and how long plain Jobs took meanwhile."""

    seconds: dict[str, float]
    """By the jobs' names, of those that have succeeded."""
    failed: list[str]
    pulses: list[float]

    @property
    def pulse(self) -> float:
        """How long a plain Job took, at a moment like any other: a long one counts as long as it took."""
        return sum(seconds**2 for seconds in self.pulses) / sum(self.pulses)


class Lives:
    """The ends of all jobs of a namespace, as they are told. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[float, bool]] = {}
        self._changed = threading.Condition()

    def read(self, lines: Iterable[bytes]) -> None:
        """Read until the watch ends."""
        for line in lines:
            body = json.loads(line)["object"]
            end = how_it_ended(body)
            if end is not None:
                with self._changed:
                    self._ends.setdefault(body["metadata"]["name"], (time.monotonic(), end))
                    self._changed.notify_all()

    def end(self, name: str) -> tuple[float, bool] | None:
        """When it ended, and whether well; None if it has not."""
        return self._ends.get(name)

    def wait(self, names: Iterable[str], *, within: float) -> None:
        """Wait until all of them are over, or the time is."""
        awaited = set(names)
        with self._changed:
            self._changed.wait_for(lambda: self._ends.keys() >= awaited, within)


@dataclass(frozen=True)
class Victim:
    """One of them."""

    way: Straight
    namespace: str

    def run(self, prefix: str, count: int, *, within: float) -> Took:
        """Make so many jobs at once, and see what becomes of them."""
        stop, pulses, begun = threading.Event(), list[float](), dict[str, float]()
        with self._followed() as lives:
            pulse = threading.Thread(target=self._pulse, args=(prefix, lives, stop, pulses), name="pulse")
            pulse.start()
            for kind, body in jobs(prefix, count):
                begun[body["metadata"]["name"]] = time.monotonic()
                self.create(kind, body)
            lives.wait(begun, within=within)
            stop.set()
            pulse.join()
        ends = {name: end for name in begun if (end := lives.end(name)) is not None}
        return Took(
            {name: at - begun[name] for name, (at, is_well) in ends.items() if is_well},
            [name for name in begun if name not in ends or not ends[name][1]],
            pulses,
        )

    def create(self, kind: str, body: Body) -> Body:
        return self.way.create(self.path(kind), body)

    def path(self, kind: str) -> str:
        group, plural = _PATHS[kind].split()
        return f"{group}/namespaces/{self.namespace}/{plural}"

    def _pulse(self, prefix: str, lives: Lives, stop: threading.Event, pulses: list[float]) -> None:
        """One after the other, at least one."""
        while not (pulses and stop.is_set()):
            name, begun = f"{prefix}-{_PULSE}-{len(pulses)}", time.monotonic()
            self.create("Job", plain_job(name))
            lives.wait([name], within=_PULSE_WITHIN)
            pulses.append(time.monotonic() - begun)

    @contextmanager
    def _followed(self) -> Iterator[Lives]:
        """All jobs, until the end of the block."""
        lives = Lives()
        with self.way.watching(map(self.path, _PATHS), lives.read):
            yield lives


def jobs(prefix: str, count: int) -> list[tuple[str, Body]]:
    """So many of them, of all kinds: each ends a moment after it has begun."""
    kinds = ("MPIJob", "MPIJob", "TrainingJob", "MPIJob", "GPUTask")
    numbered = enumerate(islice(cycle(kinds), count))
    return [(kind, _job(kind, f"{prefix}-{kind.lower()}-{number}")) for number, kind in numbered]


def _job(kind: str, name: str) -> Body:
    match kind:
        case "GPUTask":
            return manifest(name, gpu=MODEL, template={"metadata": {"annotations": {ENDS: "0"}}})
        case "TrainingJob":
            body = hostile_objects.job(kind, name, workers=_WORKERS)
            body["spec"]["etReplicaSpecs"]["launcher"]["template"]["metadata"]["annotations"][ENDS] = "0"
            return body
        case _:
            return hostile_objects.job(kind, name, workers=_WORKERS)


def plain_job(name: str) -> Body:
    """A Job of Kubernetes, which none of our controllers looks at."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": pod}},
    }


def how_it_ended(body: Body) -> bool | None:
    """Whether it has ended well; None if it has not ended."""
    status = body.get("status", {})
    held = {row["type"] for row in status.get("conditions", ()) if row["status"] == "True"}
    said = held | {status.get("phase")}
    if said & {"Succeeded", "Complete"}:
        return True
    return False if "Failed" in said else None
