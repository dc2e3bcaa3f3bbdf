"""A job's life as its status and its events told it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from testbed.mpijobs import MpiJob
from tests.support.watching import State, Watch, watch

ENDS_WITHIN = 240.0


@dataclass(frozen=True)
class Told:
    """An event about a job."""

    kind: str
    reason: str
    message: str


@dataclass(frozen=True)
class Story:
    """A job, and every status that it had since it was looked at."""

    job: MpiJob
    told: Watch

    def until(self, kind: str, *, after: float = 0.0) -> State:
        """The first status after a moment in which that condition held."""
        return self.told.wait(
            lambda state: kind in held(state),
            after=after,
            within=ENDS_WITHIN,
            what=f"{self.job.name} to be {kind}",
            instead=self.lines,
        )

    def end(self) -> State:
        """The first status that says that the job is over."""
        return self.told.wait(
            lambda state: bool({"Succeeded", "Failed"} & set(held(state))),
            within=ENDS_WITHIN,
            what=f"{self.job.name} to end",
            instead=self.lines,
        )

    def messages(self, kind: str) -> list[str]:
        """What was said while that condition held."""
        return [held(state)[kind] for state in self.told.states if kind in held(state)]

    def lines(self) -> str:
        """All that its status said, with the seconds from when it was looked at, for whom a test fails."""
        begun, seen, told = self.told.states[0].at, set[tuple[str, ...]](), list[str]()
        for state in self.told.states:
            for row in _conditions(state):
                said = tuple(str(row[field]) for field in ("type", "status", "reason", "message"))
                if said not in seen:
                    seen.add(said)
                    told.append(f"{state.at - begun:6.1f}  " + "  ".join(said).partition("\n")[0])
        return "\n".join(told)

    def events(self, reason: str) -> list[Told]:
        """Those whose reason begins so, in the order in which they were told."""
        found = self.job.namespace.kubectl.get("events", f"--field-selector=involvedObject.name={self.job.name}")
        found.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
        told = [Told(one["type"], one["reason"], one["message"]) for one in found]
        return [one for one in told if one.reason.startswith(reason)]


@contextmanager
def story(job: MpiJob) -> Iterator[Story]:
    """The job's life from now on."""
    with watch(job.namespace, "mpijobs.kubeflow.org", job.name) as told:
        yield Story(job, told)


def pods_of(job: MpiJob, role: str) -> AbstractContextManager[Watch]:
    """A watch of all of the job's pods of that role."""
    labels = f"training.kubeflow.org/job-name={job.name},training.kubeflow.org/job-role={role}"
    return watch(job.namespace, "pods", labels=labels)


def held(state: State) -> dict[str, str]:
    """The conditions that hold, with their messages."""
    return {row["type"]: row["message"] for row in _conditions(state) if row["status"] == "True"}


def told_of(state: State, kind: str) -> str:
    """The message of a condition, whether it holds or not; nothing before it is there."""
    return next((str(row["message"]) for row in _conditions(state) if row["type"] == kind), "")


def condition(state: State, kind: str) -> dict[str, Any]:
    """A condition, whether it holds or not."""
    [row] = [row for row in _conditions(state) if row["type"] == kind]
    return row


def _conditions(state: State) -> list[dict[str, Any]]:
    return list(state.body.get("status", {}).get("conditions", []))
