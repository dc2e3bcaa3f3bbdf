"""
Actions on worker pods: those that the controller creates itself, and those of a StatefulSet that leave it.

Owns: creating, marking and deleting pods by the roster in the job's status. A pod is created only if its name is
written there as pending, so none is created twice; one is deleted because of a change only if that change is
committed there.

With a StatefulSet: how workers leave that a smaller number of replicas makes superfluous while the launcher runs.
They stop being hosts, and the StatefulSet keeps its number of replicas until no command runs in any of them, or
until the time limit. All that is remembered is on the pods themselves, so this works with every CRD. And how a
finished job keeps its workers when one of them is lost, to a drain for example. Their StatefulSet may not replace
it, and would report for ever that it is missing. So the others get a reference to the job, with which they are
deleted, and the StatefulSet is deleted without them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from mpirt import names
from mpirt.controller.manifests.supporting import adoption
from mpirt.controller.manifests.workers import OVER, pod_shape, worker_pod
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Create, Delete, Operation, Patch, Question, is_object, pointer
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, worker_number
from mpirt.controller.model.reading import number, table, write_time
from mpirt.controller.model.roster import Roster, Source
from mpirt.controller.model.spec import BarePods, CleanPods, JobSpec, Owner, Settings
from mpirt.controller.observed.facts import Live, Observed, digest_of, left_to_job, names_taken
from mpirt.controller.observed.pods import Pod
from mpirt.controller.scaling.changes import DEFAULT_LIMIT, is_idle

_POINTER = pointer("metadata", "annotations", names.DRAINING_ANNOTATION)
_OURS = frozenset(Source)
KEPT_FAILURES = 3
"""How many pods are kept of workers that have failed and were replaced."""

_POINTERS = tuple(
    pointer("metadata", "annotations", name)
    for name in (names.DRAINING_ANNOTATION, names.DRAINING_SINCE_ANNOTATION)
)


def all_deletions(observed: Observed) -> list[Action]:
    """Return the deletions of all workers, of a job that is suspended or over."""
    return [_deletion(pod, "no longer needed") for pod in observed.workers if pod.deleted is None]


def worker_actions(spec: JobSpec, roster: Roster, observed: Observed, settings: Settings) -> list[Action]:
    """Return the actions that the roster asks for. Removals come first: there is a limit."""
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
        # The value of another writer is left alone.
        return None
    write: Operation = {"op": "add", "path": _POINTER, "value": wanted}
    why = "it is about to leave: no host any more"
    if not wanted:
        write, why = {"op": "remove", "path": _POINTER}, "it is a host now"
    return Patch(kinds.POD, pod.name, (is_object(pod.uid), write), why)


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
    # A pod that has failed is kept for its logs; it holds no resources.
    failed = [pod for pod in others if pod.phase == "Failed"]
    for pod in others:
        if pod not in failed[-KEPT_FAILURES:]:
            yield _deletion(pod, "not a worker of the job any more")


def _deletion(pod: Pod, why: str) -> Delete:
    return Delete(kinds.POD, pod.name, pod.uid, why)


def superfluous(spec: JobSpec, observed: Observed) -> list[Pod]:
    """Return the workers that have to leave with proof: those above the wanted number, while the launcher runs."""
    live = observed.live(kinds.STATEFUL_SET)
    if not spec.has_workers or live is None or observed.running_launcher is None:
        return []
    beyond = range(spec.workers.replicas, number(table(live.body, "spec"), "replicas"))
    # Without our annotation, it is a pod of an early version; there is no place for marks.
    pods = (pod for pod in observed.workers if pod.template and pod.deleted is None)
    return [pod for pod in pods if worker_number(pod.name) in beyond]


def replicas_now(spec: JobSpec, observed: Observed) -> int:
    """Return how many replicas the StatefulSet should have observed.now."""
    live, leaving = observed.live(kinds.STATEFUL_SET), superfluous(spec, observed)
    if live is None or all(_may_go(pod, observed) for pod in leaving):
        return spec.workers.replicas
    return number(table(live.body, "spec"), "replicas")


def marks(spec: JobSpec, observed: Observed) -> list[Patch]:
    """Return the patches by which superfluous workers stop being hosts, and wanted ones are hosts again."""
    leaving = {pod.uid for pod in superfluous(spec, observed)}
    made = []
    for pod in observed.workers:
        guard = is_object(pod.uid)
        if pod.uid in leaving and not pod.held:
            values = (str(Source.REPLICAS), write_time(observed.now))
            added = [{"op": "add", "path": path, "value": of} for path, of in zip(_POINTERS, values, strict=True)]
            made.append(Patch(kinds.POD, pod.name, (guard, *added), "it is about to leave: no host any more"))
        elif pod.held == Source.REPLICAS and pod.name in spec.workers.names and pod.deleted is None:
            there = _POINTERS if pod.held_since is not None else _POINTERS[:1]
            removed = [{"op": "remove", "path": path} for path in there]
            made.append(Patch(kinds.POD, pod.name, (guard, *removed), "it is wanted again: a host"))
    return made


def kept_workers(spec: JobSpec, observed: Observed, *, is_over: bool) -> list[Action]:
    """
    Return what is done about workers that a finished job keeps, or has kept before it was run again.

    A pod that the StatefulSet loses while it has no reference to the job would outlive the job. So no reference
    is missing when the StatefulSet is deleted.
    """
    if not is_over or spec.run.clean is not CleanPods.NONE:
        why = "it was kept after the job's end, and is no longer needed"
        return [Delete(kinds.POD, pod.name, pod.uid, why) for pod in left_to_job(observed) if pod.deleted is None]
    workers = [pod for pod in observed.workers if pod.deleted is None]
    live = observed.live(kinds.STATEFUL_SET)
    if live is not None and not _waits_for_ever(live, len(workers)):
        return []
    kept = (*workers, *_orphans(observed))
    adopted = [adoption_by_job(pod, observed.owner) for pod in kept if observed.owner.uid not in pod.owners]
    if adopted or live is None:
        return adopted
    return [Delete(live.kind, live.name, live.uid, "a kept worker is lost, and is not replaced", orphans=True)]


def _waits_for_ever(live: Live, pods: int) -> bool:
    """Whether a StatefulSet that creates no more pods has fewer than it should."""
    return digest_of(live, TEMPLATE_ANNOTATION) == OVER and pods < number(table(live.body, "spec"), "replicas")


def _orphans(observed: Observed) -> list[Pod]:
    """Return the workers that have lost their StatefulSet, but those of an earlier job of the same name."""
    since = observed.created
    pods = (pod for pod in observed.previous_workers if not pod.owners and pod.deleted is None)
    return [pod for pod in pods if pod.created is None or since is None or pod.created >= since]


def adoption_by_job(pod: Pod, owner: Owner) -> Action:
    """Return the change by which a pod stays until the job is deleted, whatever becomes of its controller."""
    reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.key.name, "uid": owner.uid}
    operations = is_object(pod.uid), adoption(reference, first=not pod.owners)
    return Patch(kinds.POD, pod.name, operations, "it stays until the job is deleted")


def leaving_questions(spec: JobSpec, observed: Observed) -> tuple[Question, ...]:
    """Return which workers to ask whether they are in use."""
    main = spec.workers.template.main
    return tuple(
        Question(pod.name, pod.uid, main)
        for pod in superfluous(spec, observed)
        if pod.held and pod.phase == "Running"
    )


def limit(spec: JobSpec, observed: Observed) -> datetime | None:
    """Return when superfluous workers go even if they are in use; None if there are none."""
    ends = [end for pod in superfluous(spec, observed) if (end := _end(pod)) is not None]
    return min(ends, default=None)


def _may_go(pod: Pod, observed: Observed) -> bool:
    end = _end(pod)
    return pod.is_over or (bool(pod.held) and is_idle(pod, observed)) or (end is not None and end <= observed.now)


def _end(pod: Pod) -> datetime | None:
    return None if pod.held_since is None else pod.held_since + DEFAULT_LIMIT
