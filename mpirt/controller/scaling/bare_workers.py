"""
Actions on worker pods that the controller creates itself.

Owns: creating, marking and deleting these pods, by what the roster in the job's status says. A pod is created only
if its name is written there as pending, so none is created twice; one is deleted because of a change only if that
change is committed there.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpirt import names
from mpirt.controller.manifests.worker_pod import pod_shape, worker_pod
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Delete, Operation, Patch, is_object, pointer
from mpirt.controller.model.roster import Roster, Source
from mpirt.controller.model.spec import BarePods, JobSpec, Settings
from mpirt.controller.observed.facts import Observed, names_taken
from mpirt.controller.observed.pods import Pod

_POINTER = pointer("metadata", "annotations", names.DRAINING_ANNOTATION)
_OURS = frozenset(Source)
KEPT_FAILURES = 3
"""How many pods are kept of workers that have failed and were replaced."""


def all_deletions(observed: Observed) -> list[Action]:
    """Return the deletions of all workers, of a job that is suspended or over."""
    return [_deletion(pod, "no longer needed") for pod in observed.workers if pod.deleted is None]


def worker_actions(spec: JobSpec, roster: Roster, observed: Observed, settings: Settings) -> list[Action]:
    """Return the actions that the roster asks for. Who is no worker any more goes first: there is a limit."""
    return [
        *_removals(roster, observed),
        *_creations(spec, roster, observed, settings),
        *(mark for pod in observed.workers if (mark := _mark(pod, roster)) is not None),
        *_departures(roster, observed),
    ]


def replicas_patch(spec: JobSpec, bare: BarePods, observed: Observed, wanted: int) -> Patch:
    """Return the patch of the number of replicas in the job's spec; it fails if the job was edited meanwhile."""
    operations: tuple[Operation, ...] = (
        is_object(spec.owner.uid),
        {"op": "add", "path": "/metadata/resourceVersion", "value": observed.version},
        {"op": "add", "path": bare.pointer, "value": wanted},
    )
    return Patch(spec.owner.kind, spec.key.name, operations, f"scaled to {wanted} workers")


def _creations(spec: JobSpec, roster: Roster, observed: Observed, settings: Settings) -> Iterator[Create]:
    """Yield the creations of pending workers, but not of one whose name another pod has."""
    taken = names_taken(observed)
    refused = {rejection.digest for rejection in observed.rejections}
    for name in roster.awaited:
        if name not in taken and (shape := pod_shape(spec, name, roster)) not in refused:
            yield Create(worker_pod(spec, settings, name, roster), "a worker of the job; creating", shape)


def _mark(pod: Pod, roster: Roster) -> Patch | None:
    """Return the patch by which a worker becomes a host or stops being one; None if nothing changes."""
    if pod.deleted is not None or pod.is_over or pod.name not in roster.everybody:
        return None
    wanted = _mark_of(pod.name, roster)
    if pod.held == wanted or (pod.held and pod.held not in _OURS):
        # What somebody else has written there is left alone.
        return None
    if wanted:
        write: Operation = {"op": "add", "path": _POINTER, "value": wanted}
        return Patch(kinds.POD, pod.name, (is_object(pod.uid), write), "it is about to leave: no host any more")
    remove: Operation = {"op": "remove", "path": _POINTER}
    return Patch(kinds.POD, pod.name, (is_object(pod.uid), remove), "it is a host now")


def _mark_of(name: str, roster: Roster) -> str:
    """Return why a worker is no host; empty if it is one."""
    change = roster.change
    if change is not None and name in change.workers:
        return str(change.source)
    return next((str(one.source) for one in roster.drains if one.name == name and not one.after), "")


def _departures(roster: Roster, observed: Observed) -> Iterator[Delete]:
    pods, change = observed.workers_by_name, roster.change
    going = [one.name for one in roster.drains if one.committed]
    if change is not None and change.committed:
        going += change.leaving
    for name in going:
        pod = pods.get(name)
        if pod is not None and pod.deleted is None:
            yield _deletion(pod, "it leaves the job")


def _removals(roster: Roster, observed: Observed) -> Iterator[Delete]:
    """Yield the deletions of pods that are no workers any more, such as those of a change that was withdrawn."""
    mine = observed.workers_by_name.items()
    others = [pod for name, pod in mine if name not in roster.everybody and pod.deleted is None]
    # A pod that has failed is kept for its logs; it takes nothing from anybody.
    failed = [pod for pod in others if pod.phase == "Failed"]
    for pod in others:
        if pod not in failed[-KEPT_FAILURES:]:
            yield _deletion(pod, "not a worker of the job any more")


def _deletion(pod: Pod, why: str) -> Delete:
    return Delete(kinds.POD, pod.name, pod.uid, why)
