"""
What must hold of elastic jobs at every moment, checked on all that was told of them.

Owns: the laws. They know no more than the watches of an administrator: statuses, scalers, pods, in the order in
which the cluster came to them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from tests.api.recorder import Told, is_worker, job_of
from tests.support.trainings import PLURALS, Body

Scalers = dict[str, Body]
"""The specs of ScaleIns and ScaleOuts by their uids."""


@dataclass(frozen=True)
class Workers:
    """The set of workers of a job, as one of its statuses has it."""

    wanted: tuple[str, ...] = ()
    source: str = ""
    """Who asked for the change that is under way; empty if there is none."""
    uid: str = ""
    leaving: tuple[str, ...] = ()
    joining: tuple[str, ...] = ()
    committed: bool = False

    @property
    def staying(self) -> list[str]:
        return [name for name in self.wanted if name not in self.leaving]


@dataclass
class _Story:
    """How far one job's story has been read."""

    workers: Workers = field(default_factory=Workers)
    ever_wanted: set[str] = field(default_factory=set)
    alive: set[str] = field(default_factory=set)
    going: set[str] = field(default_factory=set)
    """The uids of pods that are on their way out, or gone."""


def broken_limits(told: Sequence[Told], *, least: int, most: int) -> list[str]:
    """Statuses that want fewer or more workers than allowed, now or once the change is through; too many pods."""
    found, alive = list[str](), defaultdict[str, set[str]](set)
    for each in told:
        if each.kind == "TrainingJob" and (workers := _workers(each.body)).wanted:
            if not least <= len(workers.staying) <= len({*workers.wanted, *workers.joining}) <= most:
                found.append(f"{each.name}: {workers}")
        elif each.kind == "Pod" and is_worker(each.body):
            mine = alive[job_of(each.body)]
            (mine.discard if _is_going(each) else mine.add)(each.name)
            if len(mine) > most:
                found.append(f"{job_of(each.body)}: {len(mine)} pods")
    return found


def numbers_used_twice(told: Sequence[Told]) -> list[str]:
    """Names that more than one pod has had."""
    uids = defaultdict[str, set[str]](set)
    for each in told:
        if each.kind == "Pod" and is_worker(each.body):
            uids[each.name].add(each.uid)
    return [name for name, of in uids.items() if len(of) > 1]


def wrong_choices(told: Sequence[Told]) -> list[str]:
    """Changes that mean other workers than those that were asked for."""
    scalers, seen, found = _scalers(told), set[str](), list[str]()
    for each in told:
        if each.kind != "TrainingJob":
            continue
        workers = _workers(each.body)
        if workers.uid and workers.uid not in seen:
            seen.add(workers.uid)
            if set(workers.leaving) != _chosen(workers, scalers[workers.uid]):
                found.append(f"{each.name}: {scalers[workers.uid]} means {workers}")
    return found


def unasked_deletions(told: Sequence[Told], killed: AbstractSet[str]) -> list[str]:
    """Pods that were deleted although that was not requested. `killed`: the uids of those that tests deleted."""
    stories, found = defaultdict[str, _Story](_Story), list[str]()
    for each in told:
        story = stories[job_of(each.body)]
        if each.kind == "TrainingJob" and not each.deleted:
            story.workers = _workers(each.body)
            story.ever_wanted |= {*story.workers.wanted}
        elif each.kind == "Pod" and is_worker(each.body) and _is_going(each) and each.uid not in story.going:
            story.going.add(each.uid)
            if each.uid not in killed and not _is_due(each.name, story):
                found.append(f"{each.name} at {story.workers}")
    return found


def _is_due(name: str, story: _Story) -> bool:
    """Whether a worker's pod may go, by what the job's status says."""
    workers = story.workers
    if name in workers.leaving:
        return workers.committed
    # One that was to join and was not to after all: its ScaleOut was deleted, or too late.
    return name not in workers.joining and name not in story.ever_wanted


def _chosen(workers: Workers, spec: Body) -> set[str]:
    """The workers that a scaler's spec means among those that are wanted."""
    asked = spec.get("toDelete", {})
    if "podNames" in asked:
        return {name for name in workers.wanted if name in asked["podNames"]}
    ordered = sorted(workers.wanted, key=lambda name: int(name.rpartition("-")[2]))
    return set(ordered[len(ordered) - asked.get("count", 0) :])


def _scalers(told: Sequence[Told]) -> Scalers:
    return {each.uid: each.body["spec"] for each in told if each.kind in PLURALS}


def _workers(body: Body) -> Workers:
    status = body.get("status", {})
    change = status.get("scaling", {}).get("change", {})
    return Workers(
        wanted=tuple(status.get("targetWorkers", ())),
        source=change.get("source", ""),
        uid=change.get("uid", ""),
        leaving=tuple(change.get("leaving", ())),
        joining=tuple(change.get("joining", ())),
        committed=change.get("committed", False),
    )


def _is_going(told: Told) -> bool:
    is_over = told.body["status"].get("phase") in ("Succeeded", "Failed")
    return told.deleted or is_over or "deletionTimestamp" in told.body["metadata"]


__all__ = ["broken_limits", "numbers_used_twice", "unasked_deletions", "wrong_choices"]
