"""
What there is: the objects of one job as informers have them, read into values.

Owns: whose an object is, which jobs an object concerns, and what of an object needs to be kept in memory. Decides
nothing. No I/O.

An object is ours if our job's uid is that of its controlling owner, and in no other way. Labels are for finding,
never for owning. Pods whose owner is gone are ours if that had the name of ours; a copy of a pod is nobody's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from mpirt import names, podobjects
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Rejection
from mpirt.controller.model.attempts import History
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.objectnames import (
    HISTORY_ANNOTATION,
    TEMPLATE_ANNOTATION,
    WORKERS_ANNOTATION,
    object_name,
)
from mpirt.controller.model.reading import Body, moment, number, rows, table, text
from mpirt.controller.model.records import load_history
from mpirt.controller.model.spec import JobKey, Owner
from mpirt.controller.observed.pod_events import FailedCreate, evictions, read_failed_create
from mpirt.controller.observed.pods import Pod, kind_and_name, read_pod

Cached = Mapping[str, Iterable[Body]]
"""Objects by kind. More than the job's own do no harm; two of one kind and name do."""
DepartedPods = Iterable[tuple[Body, datetime]]
"""Pods that were there a moment ago, and when they went."""


@dataclass(frozen=True, slots=True)
class Live:
    """An object that exists."""

    kind: str
    name: str
    uid: str
    owner: str
    """The uid of what controls it; empty if nothing does."""
    owner_name: str
    """Kind and name of that, for people."""
    deleting: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    generation: int
    body: Body


@dataclass(frozen=True, slots=True)
class Rerun:
    """What a job says of running again once it is over."""

    value: str = ""
    """Of the annotation mpirt.dev/rerun: a new one runs it again."""
    when_deleted: bool = False
    """Whether the deletion of its launcher Job does."""


@dataclass(frozen=True, slots=True)
class Observed:
    """All that is known of a job's surroundings at one moment."""

    owner: Owner
    created: datetime | None
    """When the job was made."""
    status: JobStatus
    """What was said last."""
    history: History | None = None
    """What is known to have happened; None if a version wrote the status that kept no history."""
    rerun: Rerun = Rerun()
    mine: Mapping[str, Live] = field(default_factory=dict)
    """By kind: the objects that the job owns."""
    others: tuple[Live, ...] = ()
    """Objects that have names of ours and belong to somebody else."""
    workers: tuple[Pod, ...] = ()
    """Of the StatefulSet that exists, in order of their numbers."""
    departed_launchers: tuple[Pod, ...] = ()
    """Launcher pods of the job that went of late."""
    departed: tuple[Pod, ...] = ()
    """Workers of it that went of late: others have taken their places."""
    previous_workers: tuple[Pod, ...] = ()
    """Workers of StatefulSets that exist no more."""
    launchers: tuple[Pod, ...] = ()
    """Of the launcher Job that exists, the oldest first."""
    previous_launchers: tuple[Pod, ...] = ()
    """Pods of launcher Jobs that exist no more."""
    bare: tuple[Pod, ...] = ()
    """Pods that the job controls by itself: another controller has made them."""
    failed_creates: tuple[FailedCreate, ...] = ()
    """What is told of pods that could not be made, for whatever object of such a name."""
    rejections: tuple[Rejection, ...] = ()
    heard: datetime | None = None
    """Since when the API server has been heard of without a break; None: as long as anything here matters."""
    claimed: bool = False
    """Whether the job names this controller, so that others keep off it."""

    def live(self, kind: str) -> Live | None:
        """Our object of that kind, unless it is on its way out."""
        found = self.mine.get(kind)
        return None if found is None or found.deleting else found


def digest_of(live: Live, annotation: str) -> str:
    """What an object of ours was made from, by its annotation or, where that was stripped, its template's."""
    template = table(live.body, "spec", "template", "metadata", "annotations")
    return live.annotations.get(annotation) or text(template, annotation)


def observe(
    owner: Owner,
    body: Body,
    status: JobStatus,
    cached: Cached,
    rejections: Iterable[Rejection],
    *,
    departed: DepartedPods = (),
    heard: datetime | None = None,
) -> Observed:
    """What is known of the job that `body` is, out of everything that is known."""
    key = owner.key
    named = _named(key, cached)
    mine = {live.kind: live for live in named if live.owner == owner.uid}
    evicted = evictions(cached.get(kinds.EVICTION, ()))
    pods = [read_pod(found, evicted=evicted) for found in cached.get(kinds.POD, ()) if _is_pod_of(key, found)]
    gone = [read_pod(body, evicted=evicted, gone=at) for body, at in departed]
    workers = sorted((pod for pod in pods if pod.role == names.WORKER), key=_ordinal)
    launchers = sorted((pod for pod in pods if pod.role == names.LAUNCHER), key=_age)
    stateful_set, job = mine.get(kinds.STATEFUL_SET), mine.get(kinds.JOB)
    return Observed(
        owner=owner,
        created=moment(table(body, "metadata"), "creationTimestamp"),
        status=status,
        history=_history(status, mine.get(kinds.CONFIG_MAP)),
        rerun=_read_rerun(table(body, "metadata", "annotations")),
        mine=mine,
        others=tuple(live for live in named if live.owner != owner.uid),
        workers=tuple(pod for pod in workers if _owns(stateful_set, pod)),
        departed_launchers=tuple(pod for pod in gone if pod.role == names.LAUNCHER),
        departed=tuple(pod for pod in gone if _owns(stateful_set, pod)),
        previous_workers=tuple(pod for pod in workers if _is_previous(kinds.STATEFUL_SET, stateful_set, pod, key)),
        launchers=tuple(pod for pod in launchers if _owns(job, pod)),
        previous_launchers=tuple(pod for pod in launchers if _is_previous(kinds.JOB, job, pod, key)),
        bare=tuple(pod for pod in pods if pod.owner == owner.uid),
        failed_creates=tuple(read_failed_create(found) for found in cached.get(kinds.EVENT, ())),
        rejections=tuple(rejections),
        heard=heard,
    )


def _history(status: JobStatus, config_map: Live | None) -> History | None:
    """What happened, by the status, or where its CRD drops that, by the job's ConfigMap."""
    if status.history is not None or config_map is None:
        return status.history
    return load_history(config_map.annotations.get(HISTORY_ANNOTATION, ""))


def _named(key: JobKey, cached: Cached) -> list[Live]:
    """The objects that have the names of the job's own, whoever owns them."""
    return [
        read_live(kind, found)
        for kind in kinds.OWNED
        for found in cached.get(kind, ())
        if _is_at(found, key.namespace, object_name(kind, key.name))
    ]


def _read_rerun(annotations: Body) -> Rerun:
    when_deleted = text(annotations, names.RERUN_WHEN_DELETED_ANNOTATION) == "true"
    return Rerun(text(annotations, names.RERUN_ANNOTATION), when_deleted)


def read_live(kind: str, body: Body) -> Live:
    """An object as the API server has it."""
    metadata = table(body, "metadata")
    owner = podobjects.controller(metadata)
    return Live(
        kind=kind,
        name=text(metadata, "name"),
        uid=text(metadata, "uid"),
        owner=text(owner, "uid"),
        owner_name=kind_and_name(owner),
        deleting="deletionTimestamp" in metadata,
        labels=table(metadata, "labels"),
        annotations=table(metadata, "annotations"),
        generation=number(metadata, "generation"),
        body=body,
    )


def job_key(body: Body) -> JobKey | None:
    """The job that an object with our labels concerns, whoever owns it; None if it doesn't say."""
    metadata = table(body, "metadata")
    labels = table(metadata, "labels")
    name = text(labels, names.KUBEFLOW_JOB_LABEL)
    kind = text(labels, names.JOB_KIND_LABEL) or kinds.MPI_JOB
    return JobKey(kind, text(metadata, "namespace"), name) if name else None


# What nobody here reads, by far the most of what an object weighs.
_UNREAD_METADATA = frozenset({"managedFields", "selfLink"})
_UNREAD_ANNOTATIONS = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
_READ_OF_EVENT = frozenset({"involvedObject", "message", "lastTimestamp", "eventTime"})
_READ_OF_POD_SPEC = frozenset({"nodeName", "readinessGates"})


def slim(kind: str, body: Body) -> dict[str, Any]:
    """The object without what nobody here reads: what a cache should hold."""
    metadata = {name: value for name, value in table(body, "metadata").items() if name not in _UNREAD_METADATA}
    if "annotations" in metadata:
        kept = {name: value for name, value in metadata["annotations"].items() if name not in _UNREAD_ANNOTATIONS}
        metadata["annotations"] = kept
    if kind in (kinds.EVENT, kinds.EVICTION):
        return {"metadata": metadata, **{name: body[name] for name in _READ_OF_EVENT if name in body}}
    slimmed = {**body, "metadata": metadata}
    if kind == kinds.CONFIG_MAP and "binaryData" in body:
        slimmed["binaryData"] = {name: _shared(value) for name, value in body["binaryData"].items()}
    if kind == kinds.POD:
        slimmed["spec"] = _slim_pod_spec(body["spec"])
    if kind in (kinds.STATEFUL_SET, kinds.JOB):
        # Its template is compared by digest and generation, never field by field.
        slimmed["spec"] = {name: value for name, value in body["spec"].items() if name != "template"}
        if digests := _digests(body):
            slimmed["spec"]["template"] = {"metadata": {"annotations": digests}}
    return slimmed


def _slim_pod_spec(spec: Body) -> dict[str, Any]:
    kept = {name: value for name, value in spec.items() if name in _READ_OF_POD_SPEC}
    sidecars = [
        {name: row.get(name) for name in ("name", "restartPolicy")}
        for row in rows(spec, "initContainers")
        if row.get("restartPolicy")
    ]
    return kept | {"initContainers": sidecars} if sidecars else kept


def _digests(body: Body) -> dict[str, str]:
    """Of what its template was made from."""
    annotations = table(body, "spec", "template", "metadata", "annotations")
    return {name: annotations[name] for name in (TEMPLATE_ANNOTATION, WORKERS_ANNOTATION) if name in annotations}


@lru_cache(maxsize=8)
def _shared(value: str) -> str:
    """The same value for equal ones: every job's ConfigMap has the same files, and one copy of them is kept."""
    return value


def _is_at(body: Body, namespace: str, name: str) -> bool:
    metadata = table(body, "metadata")
    return text(metadata, "namespace") == namespace and text(metadata, "name") == name


def _owns(live: Live | None, pod: Pod) -> bool:
    return live is not None and pod.owner == live.uid


def _is_previous(kind: str, live: Live | None, pod: Pod, key: JobKey) -> bool:
    """Whether it was made by an object that had the name of ours, and may have been orphaned by it."""
    name = object_name(kind, key.name)
    is_of_that_name = pod.owner_name in ("", f"{kind} {name}") and pod.name.startswith(f"{name}-")
    return is_of_that_name and not _owns(live, pod)


def _is_pod_of(key: JobKey, body: Body) -> bool:
    return job_key(body) == key and not _is_copy(body, key)


def _is_copy(body: Body, key: JobKey) -> bool:
    """
    Whether somebody has made it from a pod of the job, as `kubectl debug --copy-to` does, its labels included.

    What a controller has made keeps its generateName when it is orphaned. What has the name of a worker stands in
    its way, whoever made it.
    """
    metadata = table(body, "metadata")
    if podobjects.controller(metadata) or text(metadata, "generateName"):
        return False
    stem, _, ordinal = text(metadata, "name").rpartition("-")
    return stem != object_name(kinds.STATEFUL_SET, key.name) or not _is_number(ordinal)


def _is_number(digits: str) -> bool:
    return digits.isascii() and digits.isdigit()


def _age(pod: Pod) -> tuple[float, str]:
    return pod.created.timestamp() if pod.created else 0.0, pod.name


def _ordinal(pod: Pod) -> int:
    digits = pod.name.rpartition("-")[2]
    return int(digits) if _is_number(digits) else -1
