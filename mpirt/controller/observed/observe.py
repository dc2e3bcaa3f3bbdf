"""
The observed state of one job: its objects from the informers' caches, read into values.

Owns: whose an object is, which job an object concerns, and which parts of an object the caches keep. Decides
nothing. No I/O.

An object is ours if, and only if, the uid in its controller reference is our job's. Labels are for finding
objects, never for owning them. Pods whose owner is gone are ours if it had the name of ours; a copy of a pod is
nobody's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mpirt import names, podobjects
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Answer, Rejection
from mpirt.controller.model.attempts import Disbelieved, History, load_history
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.objectnames import (
    HISTORY_ANNOTATION,
    TEMPLATE_ANNOTATION,
    WORKERS_ANNOTATION,
    object_name,
    worker_name,
    worker_number,
)
from mpirt.controller.model.reading import Body, moment, number, pruned, rows, table, text
from mpirt.controller.model.spec import JobKey, Owner, Scaler
from mpirt.controller.observed.digested import digested
from mpirt.controller.observed.nodes import Signal
from mpirt.controller.observed.pods import (
    FailedCreate,
    Pod,
    evictions,
    kind_and_name,
    read_failed_create,
    read_pod,
)

Cached = Mapping[str, Iterable[Body]]
"""Objects by kind. Objects of other jobs do no harm; two of the same kind and name do."""
DepartedPods = Iterable[tuple[Body, datetime]]
"""Departed pods, each with the time at which it was gone."""


@dataclass(frozen=True, slots=True)
class Live:
    """An object that exists."""

    kind: str
    name: str
    uid: str
    owner: str
    """The uid of its controller reference; empty if it has none."""
    owner_name: str
    """Kind and name in that reference, for messages."""
    deleting: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    generation: int
    body: Body


@dataclass(frozen=True, slots=True)
class Rerun:
    """The job's annotations about running again once it is over."""

    value: str = ""
    """The value of mpirt.dev/rerun: a new value runs the job again."""
    when_deleted: bool = False
    """Whether deleting its launcher Job runs it again, too."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything known about a job at one moment."""

    owner: Owner
    created: datetime | None
    """When the job was created."""
    status: JobStatus
    """The status in the job object."""
    version: str = ""
    """Its resourceVersion."""
    history: History | None = None
    """The recorded history; None if there is none, as before the first status."""
    rerun: Rerun = Rerun()
    mine: Mapping[str, Live] = field(default_factory=dict)
    """The objects that the job owns, by kind."""
    others: tuple[Live, ...] = ()
    """Objects that have the names of ours, but belong to somebody else."""
    workers: tuple[Pod, ...] = ()
    """Pods of the existing StatefulSet, or those that we have created for the job, by their numbers."""
    departed_launchers: tuple[Pod, ...] = ()
    """Departed launcher pods of the job."""
    departed: tuple[Pod, ...] = ()
    """Departed pods of the same: others may have taken their places."""
    previous_workers: tuple[Pod, ...] = ()
    """Pods of StatefulSets, or of jobs of the same name, that no longer exist."""
    launchers: tuple[Pod, ...] = ()
    """Pods of the existing launcher Job, the oldest first."""
    previous_launchers: tuple[Pod, ...] = ()
    """Pods of launcher Jobs that no longer exist."""
    bare: tuple[Pod, ...] = ()
    """Pods whose controller reference is the job itself: another controller has created them."""
    strangers: tuple[Live, ...] = ()
    """Pods of others, or of an earlier job, that have names of workers which the controller creates itself."""
    failed_creates: tuple[FailedCreate, ...] = ()
    """Events about pods that could not be created, by whatever object with the names of ours."""
    rejections: tuple[Rejection, ...] = ()
    heard: datetime | None = None
    """Since when the API server has answered without a break; None: for as long as it matters."""
    scalers: tuple[Scaler, ...] = ()
    """The objects that ask for a change of the job's workers, the oldest first."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """What workers that are about to leave have answered, by the uids of their pods."""
    nodes: Mapping[str, Signal] = field(default_factory=dict)
    """The nodes that are about to go, by their names."""
    sees_nodes: bool = False
    """Whether nodes can be read."""
    gone_job: Live | None = None
    """The last launcher Job, if it was deleted or is being deleted, as it was before; without uid if unknown."""
    disbelieved: Disbelieved | None = None
    """Set if the existing launcher Job is Complete, and has failed all the same."""

    @property
    def written_verdict(self) -> Disbelieved | None:
        """The last launcher Job that was not believed, as it is in the recorded history."""
        return None if self.history is None else self.history.disbelieved

    def live(self, kind: str) -> Live | None:
        """Return our object of that kind, unless it is being deleted."""
        found = self.mine.get(kind)
        return None if found is None or found.deleting else found


def digest_of(live: Live, annotation: str) -> str:
    """Return the digest in an object's annotation or, if that was stripped, in its template's."""
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
) -> Observed:
    """Return what is known about the job in `body`, from the cached objects."""
    key, named = owner.key, _named(owner.key, cached)
    mine = {live.kind: live for live in named if live.owner == owner.uid}
    evicted = evictions(cached.get(kinds.EVICTION, ()))
    pods = [read_pod(found, evicted=evicted) for found in cached.get(kinds.POD, ()) if _is_pod_of(key, found)]
    gone = [read_pod(body, evicted=evicted, gone=at) for body, at in departed]
    workers = sorted((pod for pod in pods if pod.role == names.WORKER), key=lambda pod: worker_number(pod.name))
    launchers = sorted((pod for pod in pods if pod.role == names.LAUNCHER), key=_age)
    maker, job = _workers_maker(owner, mine), mine.get(kinds.JOB)
    return Observed(
        owner=owner,
        created=moment(table(body, "metadata"), "creationTimestamp"),
        status=status,
        version=text(table(body, "metadata"), "resourceVersion"),
        history=_history(status, mine.get(kinds.CONFIG_MAP)),
        rerun=_read_rerun(table(body, "metadata", "annotations")),
        mine=mine,
        others=tuple(live for live in named if live.owner != owner.uid),
        workers=tuple(pod for pod in workers if maker.made(pod)),
        departed_launchers=tuple(pod for pod in gone if pod.role == names.LAUNCHER),
        departed=tuple(pod for pod in gone if maker.made(pod)),
        previous_workers=tuple(pod for pod in workers if maker.is_previous(pod)),
        launchers=tuple(pod for pod in launchers if _owns(job, pod)),
        previous_launchers=tuple(pod for pod in launchers if _launcher_maker(key, job).is_previous(pod)),
        bare=tuple(pod for pod in pods if pod.owner == owner.uid and not maker.made(pod)),
        strangers=_strangers(owner, cached),
        gone_job=_gone_job(owner, cached),
        failed_creates=tuple(read_failed_create(found) for found in cached.get(kinds.EVENT, ())),
        rejections=tuple(rejections),
    )


def _gone_job(owner: Owner, cached: Cached) -> Live | None:
    found = (read_live(kinds.JOB, body) for body in cached.get(kinds.GONE_JOB, ()))
    return next((one for one in found if one.owner == owner.uid or not one.uid), None)


def _strangers(owner: Owner, cached: Cached) -> tuple[Live, ...]:
    """Return the pods that have names of workers, and are not the job's own by owner and labels."""
    if owner.kind not in kinds.WITH_BARE_WORKERS:
        return ()
    named = (body for body in cached.get(kinds.POD, ()) if _has_name_of_worker(body, owner.key))
    found = ((body, read_live(kinds.POD, body)) for body in named)
    return tuple(live for body, live in found if live.owner != owner.uid or job_key(body) != owner.key)


def _has_name_of_worker(body: Body, key: JobKey) -> bool:
    name = text(table(body, "metadata"), "name")
    return name == worker_name(key.name, worker_number(name))


def _history(status: JobStatus, config_map: Live | None) -> History | None:
    """Return the history in the status or, if the CRD drops it there, in the job's ConfigMap."""
    if status.history is not None or config_map is None:
        return status.history
    return load_history(config_map.annotations.get(HISTORY_ANNOTATION, ""))


def _named(key: JobKey, cached: Cached) -> list[Live]:
    """Return the objects that have the names of the job's own, whoever owns them."""
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
    """Read an object as the cache has it."""
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
    """Return the job that an object's labels name, whoever owns the object; None if they name none."""
    metadata = table(body, "metadata")
    labels = table(metadata, "labels")
    name = text(labels, names.KUBEFLOW_JOB_LABEL)
    kind = text(labels, names.JOB_KIND_LABEL) or kinds.MPI_JOB
    return JobKey(kind, text(metadata, "namespace"), name) if name else None


# What slim() drops and keeps. Fields that nothing here reads are by far the largest part of an object.
_UNREAD_METADATA = frozenset({"managedFields", "selfLink"})
_UNREAD_ANNOTATIONS = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
_READ_OF_EVENT = frozenset({"involvedObject", "message", "lastTimestamp", "eventTime"})
_READ_OF_NODE = ("name", "uid", "resourceVersion")
_READ_OF_NODE_SPEC = ("taints", "unschedulable")
_READ_OF_POD_SPEC = frozenset({"nodeName", "readinessGates"})
_READ_POD_LABELS = (
    names.KUBEFLOW_JOB_LABEL,
    names.JOB_KIND_LABEL,
    names.KUBEFLOW_ROLE_LABEL,
    names.KUBEFLOW_INDEX_LABEL,
    names.REVISION_LABEL,
)


def slim(kind: str, body: Body) -> dict[str, Any]:
    """Return the object without the fields that nothing here reads, for the cache."""
    metadata = {name: value for name, value in table(body, "metadata").items() if name not in _UNREAD_METADATA}
    if "annotations" in metadata:
        kept = {name: value for name, value in metadata["annotations"].items() if name not in _UNREAD_ANNOTATIONS}
        metadata["annotations"] = kept
    if kind in (kinds.EVENT, kinds.EVICTION):
        return {"metadata": metadata, **{name: body[name] for name in _READ_OF_EVENT if name in body}}
    if kind == kinds.NODE:
        spec = table(body, "spec")
        kept = {name: metadata[name] for name in _READ_OF_NODE if name in metadata}
        return {"metadata": kept, "spec": {name: spec[name] for name in _READ_OF_NODE_SPEC if name in spec}}
    slimmed = {**body, "metadata": metadata, **digested(kind, body)}
    if kind not in kinds.RESOURCES:
        # Its CRD may keep whatever users write.
        return {name: pruned(value) for name, value in slimmed.items()}
    if kind == kinds.POD:
        slimmed["spec"] = _slim_pod_spec(body["spec"])
        labels = table(metadata, "labels")
        metadata["labels"] = {name: labels[name] for name in _READ_POD_LABELS if name in labels}
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
    """Return the digests in the annotations of its pod template."""
    annotations = table(body, "spec", "template", "metadata", "annotations")
    return {name: annotations[name] for name in (TEMPLATE_ANNOTATION, WORKERS_ANNOTATION) if name in annotations}


def _is_at(body: Body, namespace: str, name: str) -> bool:
    metadata = table(body, "metadata")
    return text(metadata, "namespace") == namespace and text(metadata, "name") == name


def _owns(live: Live | None, pod: Pod) -> bool:
    return live is not None and pod.owner == live.uid


@dataclass(frozen=True, slots=True)
class _Maker:
    """The object that controls the pods of a role."""

    uid: str
    """Empty if there is none."""
    name: str
    """Its kind and name, as pods name it."""
    pods: str
    """How the names of its pods begin."""
    marks: bool = False
    """Whether another controller may have created pods for the same object: those lack our mark."""

    def made(self, pod: Pod) -> bool:
        is_ours = bool(pod.template) or not self.marks
        return bool(self.uid) and pod.owner == self.uid and pod.role == names.WORKER and is_ours

    def is_previous(self, pod: Pod) -> bool:
        """Whether the pod was created, and perhaps orphaned, by an earlier object with the name of this one."""
        is_of_that_name = pod.owner_name in ("", self.name) and pod.name.startswith(self.pods)
        return is_of_that_name and (not self.uid or pod.owner != self.uid)


def _workers_maker(owner: Owner, mine: Mapping[str, Live]) -> _Maker:
    name = object_name(kinds.STATEFUL_SET, owner.key.name)
    if owner.kind in kinds.WITH_BARE_WORKERS:
        return _Maker(owner.uid, f"{owner.kind} {owner.key.name}", f"{name}-", marks=True)
    live = mine.get(kinds.STATEFUL_SET)
    return _Maker("" if live is None else live.uid, f"{kinds.STATEFUL_SET} {name}", f"{name}-")


def _launcher_maker(key: JobKey, job: Live | None) -> _Maker:
    name = object_name(kinds.JOB, key.name)
    return _Maker("" if job is None else job.uid, f"{kinds.JOB} {name}", f"{name}-")


def _is_pod_of(key: JobKey, body: Body) -> bool:
    return job_key(body) == key and not _is_copy(body, key)


def _is_copy(body: Body, key: JobKey) -> bool:
    """
    Whether the pod is a copy of one of the job's, labels included, as `kubectl debug --copy-to` can create it.

    A pod that a controller has created keeps its generateName when it is orphaned. A pod with the name of a worker
    is in that worker's way, whoever created it, and does not count as a copy.
    """
    metadata = table(body, "metadata")
    if podobjects.controller(metadata) or text(metadata, "generateName"):
        return False
    return not _has_name_of_worker(body, key)


def _age(pod: Pod) -> tuple[float, str]:
    return pod.created.timestamp() if pod.created else 0.0, pod.name
