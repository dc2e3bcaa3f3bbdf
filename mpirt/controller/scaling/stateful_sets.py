"""
Workers of a StatefulSet that leave it.

Owns: how those leave that a smaller number of replicas makes superfluous, while the launcher runs: they stop being
hosts, and the StatefulSet keeps its number of replicas until no command runs in any of them, or until the time
limit. All that is remembered is on the pods themselves, so this works with every CRD.

And how a finished job keeps its workers when one of them is lost, to a drain for example. Their StatefulSet may
not replace it, and would report for ever that it is missing. So the others get a reference to the job, with which
they are deleted, and the StatefulSet is deleted without them.
"""

from __future__ import annotations

from datetime import datetime

from mpirt import names
from mpirt.controller.manifests.workers import OVER
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, Patch, Question, is_object, pointer
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, worker_number
from mpirt.controller.model.reading import number, table, write_time
from mpirt.controller.model.roster import Source
from mpirt.controller.model.spec import CleanPods, JobSpec, Owner
from mpirt.controller.observed.facts import Live, Observed, digest_of, left_to_job
from mpirt.controller.observed.pods import Pod
from mpirt.controller.scaling.departures import DEFAULT_LIMIT, is_idle

_POINTERS = tuple(
    pointer("metadata", "annotations", name)
    for name in (names.DRAINING_ANNOTATION, names.DRAINING_SINCE_ANNOTATION)
)


def superfluous(spec: JobSpec, observed: Observed) -> list[Pod]:
    """Return the workers that have to leave with proof: those above the wanted number, while the launcher runs."""
    live = observed.live(kinds.STATEFUL_SET)
    if not spec.has_workers or live is None or observed.running_launcher is None:
        return []
    beyond = range(spec.workers.replicas, number(table(live.body, "spec"), "replicas"))
    # Without our annotation, it is a pod of an early version; there is no place for marks.
    pods = (pod for pod in observed.workers if pod.template and pod.deleted is None)
    return [pod for pod in pods if worker_number(pod.name) in beyond]


def replicas_now(spec: JobSpec, observed: Observed, *, now: datetime) -> int:
    """Return how many replicas the StatefulSet should have now."""
    live, leaving = observed.live(kinds.STATEFUL_SET), superfluous(spec, observed)
    if live is None or all(_may_go(pod, observed, now) for pod in leaving):
        return spec.workers.replicas
    return number(table(live.body, "spec"), "replicas")


def marks(spec: JobSpec, observed: Observed, *, now: datetime) -> list[Patch]:
    """Return the patches by which superfluous workers stop being hosts, and wanted ones are hosts again."""
    leaving = {pod.uid for pod in superfluous(spec, observed)}
    made = []
    for pod in observed.workers:
        guard = is_object(pod.uid)
        if pod.uid in leaving and not pod.held:
            values = (str(Source.REPLICAS), write_time(now))
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
    adopted = [_adoption(pod, observed.owner) for pod in kept if observed.owner.uid not in pod.owners]
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


def _adoption(pod: Pod, owner: Owner) -> Action:
    reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.key.name, "uid": owner.uid}
    change = (
        {"op": "add", "path": "/metadata/ownerReferences/-", "value": reference}
        if pod.owners
        else {"op": "add", "path": "/metadata/ownerReferences", "value": [reference]}
    )
    return Patch(kinds.POD, pod.name, (is_object(pod.uid), change), "it stays until the job is deleted")


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


def _may_go(pod: Pod, observed: Observed, now: datetime) -> bool:
    end = _end(pod)
    return pod.is_over or (bool(pod.held) and is_idle(pod, observed)) or (end is not None and end <= now)


def _end(pod: Pod) -> datetime | None:
    return None if pod.held_since is None else pod.held_since + DEFAULT_LIMIT
