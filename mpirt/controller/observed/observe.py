"""
The observed state of one job: its objects from the informers' caches, read into values.

Owns: whose an object is, and which job an object concerns. Decides nothing. No I/O.

An object is ours if, and only if, the uid in its controller reference is our job's. Labels are for finding
objects, never for owning them. Pods whose owner is gone are ours if it had the name of ours; a copy of a pod has
no owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from mpirt import names, podobjects
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Answer, Rejection
from mpirt.controller.model.attempts import History, load_history
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.objectnames import (
    HISTORY_ANNOTATION,
    object_name,
    object_names,
    worker_name,
    worker_number,
)
from mpirt.controller.model.reading import Body, moment, table, text, version_of
from mpirt.controller.model.spec import JobKey, Owner, Scaler, Settings
from mpirt.controller.observed.facts import Live, Observed
from mpirt.controller.observed.nodes import Signal
from mpirt.controller.observed.pods import Pod, evictions, kind_and_name, read_failed_create, read_pod

Cached = Mapping[str, Iterable[Body]]
"""Objects by kind. Objects of other jobs do no harm; two of the same kind and name do."""
DepartedPods = Iterable[tuple[Body, datetime]]
"""Departed pods, each with the time at which it was gone."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a plan is made from, besides an object and the objects that concern it."""

    settings: Settings
    now: datetime
    departed: DepartedPods = ()
    accepted: frozenset[str] = frozenset()
    """The digests of the dry runs that were accepted of late in the namespace."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """What pods have answered when asked whether they are in use, by their uids."""
    nodes: Mapping[str, Signal] | None = None
    """The nodes that are about to go; None if nodes can't be read."""
    heard: datetime | None = None
    """Since when the API server has answered without a break; None: for as long as it matters."""


def observe(
    body: Body,
    cached: Cached,
    rejections: Iterable[Rejection],
    around: Circumstances,
    *,
    owner: Owner,
    status: JobStatus,
    scalers: tuple[Scaler, ...] = (),
) -> Observed:
    """Return what is known about the job in `body`, from the cached objects."""
    named = _named(owner.key, cached)
    mine = {live.kind: live for live in named if live.owner == owner.uid}
    metadata = body["metadata"]
    annotations = table(metadata, "annotations")
    observed = Observed(
        owner=owner,
        created=moment(metadata, "creationTimestamp"),
        status=status,
        now=around.now,
        version=version_of(body),
        history=_history(status, mine.get(kinds.CONFIG_MAP)),
        rerun=text(annotations, names.RERUN_ANNOTATION),
        rerun_when_deleted=annotations.get(names.RERUN_WHEN_DELETED_ANNOTATION) == "true",
        mine=mine,
        others=tuple(live for live in named if live.owner != owner.uid),
        strangers=_strangers(owner, cached),
        gone_job=_gone_job(owner, cached),
        failed_creates=tuple(read_failed_create(found) for found in cached.get(kinds.EVENT, ())),
        rejections=tuple(rejections),
        accepted=around.accepted,
        heard=around.heard,
        scalers=scalers,
        answers=around.answers,
        nodes=around.nodes or {},
        sees_nodes=around.nodes is not None,
    )
    return _with_pods(observed, cached, around.departed)


def _with_pods(observed: Observed, cached: Cached, departed: DepartedPods) -> Observed:
    owner, mine = observed.owner, observed.mine
    evicted = evictions(cached.get(kinds.EVICTION, ()))
    found = (body for body in cached.get(kinds.POD, ()) if _is_pod_of(owner.key, body))
    pods = [read_pod(body, evicted=evicted) for body in found]
    gone = [read_pod(body, evicted=evicted, gone=at) for body, at in departed]
    workers = sorted((pod for pod in pods if pod.role == names.WORKER), key=lambda pod: worker_number(pod.name))
    launchers = sorted((pod for pod in pods if pod.role == names.LAUNCHER), key=_age)
    maker = _maker(names.WORKER, kinds.STATEFUL_SET, owner, mine)
    launcher = _maker(names.LAUNCHER, kinds.JOB, owner, mine)
    return replace(
        observed,
        workers=tuple(pod for pod in workers if maker.made(pod)),
        departed_launchers=tuple(pod for pod in gone if pod.role == names.LAUNCHER),
        departed=tuple(pod for pod in gone if maker.made(pod)),
        previous_workers=tuple(pod for pod in workers if maker.is_previous(pod)),
        launchers=tuple(pod for pod in launchers if launcher.made(pod)),
        previous_launchers=tuple(pod for pod in launchers if launcher.is_previous(pod)),
        bare=tuple(pod for pod in pods if pod.owner == owner.uid and not maker.made(pod)),
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
    name: str = body["metadata"].get("name", "")
    return name == worker_name(key.name, worker_number(name))


def _history(status: JobStatus, config_map: Live | None) -> History | None:
    """Return the history in the status or, if the CRD drops it there, in the job's ConfigMap."""
    if status.history is not None or config_map is None:
        return status.history
    return load_history(config_map.annotations.get(HISTORY_ANNOTATION, ""))


def _named(key: JobKey, cached: Cached) -> list[Live]:
    """Return the objects that have the names of the job's own, with any owner."""
    found = (read_live(kind, body) for kind in kinds.OWNED for body in cached.get(kind, ()))
    own = object_names(key.name)
    return [live for live in found if live.name == own[live.kind] and live.namespace == key.namespace]


def read_live(kind: str, body: Body) -> Live:
    """Read an object as the cache has it."""
    metadata = body.get("metadata", {})
    owner = podobjects.controller(metadata)
    return Live(
        kind=kind,
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        owner=owner.get("uid", ""),
        owner_name=kind_and_name(owner),
        deleting="deletionTimestamp" in metadata,
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
        generation=metadata.get("generation", 0),
        spec=body.get("spec", {}),
        status=body.get("status", {}),
        body=body,
    )


def job_key(body: Body) -> JobKey | None:
    """Return the job that an object's labels name, with any owner; None if they name none."""
    metadata = body["metadata"]
    labels = metadata.get("labels", {})
    name, kind = labels.get(names.KUBEFLOW_JOB_LABEL), labels.get(names.JOB_KIND_LABEL) or kinds.MPI_JOB
    return JobKey(kind, metadata.get("namespace", ""), name) if name else None


@dataclass(frozen=True, slots=True)
class _Maker:
    """The object that controls the pods of a role."""

    role: str
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
        return bool(self.uid) and pod.owner == self.uid and pod.role == self.role and is_ours

    def is_previous(self, pod: Pod) -> bool:
        """Whether the pod was created, and perhaps orphaned, by an earlier object with the name of this one."""
        is_of_that_name = pod.owner_name in ("", self.name) and pod.name.startswith(self.pods)
        return is_of_that_name and (not self.uid or pod.owner != self.uid)


def _maker(role: str, kind: str, owner: Owner, mine: Mapping[str, Live]) -> _Maker:
    """Return what controls the pods of a role: the object of that kind or, of bare workers, the job itself."""
    name, live = object_name(kind, owner.key.name), mine.get(kind)
    if kind == kinds.STATEFUL_SET and owner.kind in kinds.WITH_BARE_WORKERS:
        return _Maker(role, owner.uid, f"{owner.kind} {owner.key.name}", f"{name}-", marks=True)
    return _Maker(role, "" if live is None else live.uid, f"{kind} {name}", f"{name}-")


def _is_pod_of(key: JobKey, body: Body) -> bool:
    return job_key(body) == key and not _is_copy(body, key)


def _is_copy(body: Body, key: JobKey) -> bool:
    """
    Whether the pod is a copy of one of the job's, labels included, as `kubectl debug --copy-to` can create it.

    A pod that a controller has created keeps its generateName when it is orphaned. A pod with the name of a worker
    is in that worker's way, with any owner, and does not count as a copy.
    """
    metadata = body["metadata"]
    if podobjects.controller(metadata) or metadata.get("generateName"):
        return False
    return not _has_name_of_worker(body, key)


def _age(pod: Pod) -> tuple[float, str]:
    return pod.created.timestamp() if pod.created else 0.0, pod.name
