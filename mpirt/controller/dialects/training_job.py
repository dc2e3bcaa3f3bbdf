"""
kai.alibabacloud.com TrainingJob, ScaleIn and ScaleOut, as et-operator has them.

Owns: reading a TrainingJob into a JobSpec, and the form of its status: et-operator's plus the job's history, the
rest of the roster, and the phase by which other programs judge the job. Which workers it has is in its status,
because a worker's number is never used twice: the spec says only how many. And reading ScaleIns and ScaleOuts, and
the form of their status. Dashboards and columns show the type of the last condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from mpirt import names, podobjects
from mpirt.controller.dialects.base import (
    US,
    Dialect,
    check_job_name,
    condition_row,
    read_common,
    read_conditions,
    write_common,
)
from mpirt.controller.dialects.template import read_template
from mpirt.controller.manifests.pods import main_container
from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Condition, JobStatus, Type
from mpirt.controller.model.kinds import TRAINING_JOB, Resource
from mpirt.controller.model.objectnames import (
    GAVE_UP,
    GAVE_UP_ANNOTATION,
    MOST_WORKERS,
    PATIENCE_ANNOTATION,
    worker_names,
)
from mpirt.controller.model.reading import Body, moment, rows, table, text, write_time
from mpirt.controller.model.roster import Roster, Source, read_roster, write_roster
from mpirt.controller.model.spec import (
    BarePods,
    CleanPods,
    Elastic,
    Implementation,
    JobKey,
    JobSpec,
    Launcher,
    Restart,
    RunPolicy,
    Scaler,
    Template,
    Workers,
)
from mpirt.errors import SpecError
from mpirt.fields import Fields, ValidFields
from mpirt.hosts import parse_count

API_VERSION = "kai.alibabacloud.com/v1alpha1"
# By it a job is suspended and resumed: its value is then "true".
SUSPENDED_ANNOTATION = "job-supervisor.kube-ai.io/job-suspended"

# TrainingJobs have no field for a manager.
MANAGER_ANNOTATION = f"{names.PREFIX}/managed-by"

# "true": workers leave nodes that are cordoned.
LEAVE_CORDONED_ANNOTATION = f"{names.PREFIX}/leave-cordoned-nodes"

_REPLICAS = "/spec/etReplicaSpecs/worker/replicas"
_DEFAULT_RESTARTS = 6

_VERSIONS = (Resource(API_VERSION, TRAINING_JOB, "trainingjobs"),)
SCALERS = tuple(
    Resource(API_VERSION, kind, plural)
    for kind, plural in ((kinds.SCALE_IN, "scaleins"), (kinds.SCALE_OUT, "scaleouts"))
)

_PODS = {Source.SCALE_IN: "toDeletePods", Source.SCALE_OUT: "addPods"}
_UNUSED = ("script", "env", "backoffLimit")
_SECONDS = 60
_LAST = datetime.max.replace(tzinfo=UTC)

# The conditions that are phases whatever else holds, the most final one first.
_PHASES = (Type.FAILED, Type.SUCCEEDED, Type.SUSPENDED)
_RUNNING = "currentWorkers"


class _AttachMode(StrEnum):
    """The values of launcherAttachMode; both mean the same here."""

    SSH = "ssh"
    KUBEXEC = "kubexec"


class _JobRestart(StrEnum):
    """The values of the job's restartPolicy."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"


class TrainingJob(Dialect):
    """The dialect of TrainingJobs."""

    def manager(self, body: Body) -> object:
        return text(table(body, "metadata", "annotations"), MANAGER_ANNOTATION)

    def parse(self, body: Body) -> JobSpec:
        owner = self.owner(body)
        check_job_name(owner.key.name)
        spec = Fields(body, "").needed_table("spec")
        replicas = spec.needed_table("etReplicaSpecs")
        launcher, worker = replicas.needed_table("launcher"), replicas.needed_table("worker")
        template = read_template(worker, "")
        spec.choice("launcherAttachMode", _AttachMode, _AttachMode.SSH)
        return JobSpec(
            owner=owner,
            implementation=Implementation.OPEN_MPI,
            slots=spec.number("slotsPerWorker", least=1) or gpus(template) or 1,
            workers=_workers(worker, template, body, owner.key.name),
            launcher=_launcher(launcher),
            run=_run_policy(spec, launcher, body, _patience(body)),
        )

    def run_policy(self, body: Body) -> RunPolicy:
        spec = ValidFields(table(body, "spec"), "spec")
        try:
            patience = _patience(body)
        except SpecError:
            patience = None
        return _run_policy(spec, spec.table("etReplicaSpecs").table("launcher"), body, patience)

    def read_status(self, body: Body) -> JobStatus:
        return read_status(table(body, "status"))

    def scalers(self, objects: Mapping[str, Iterable[Body]]) -> tuple[Scaler, ...]:
        found = [read_scaler(Source(kind), body) for kind in kinds.SCALERS for body in objects.get(kind, ())]
        return tuple(sorted(found, key=lambda one: (one.created or _LAST, one.source, one.name)))

    def write_status(self, status: JobStatus, key: JobKey) -> dict[str, object]:
        return {
            "phase": phase_of(status),
            **write_common(status, key, sorted(status.conditions.values(), key=_order)),
            "restartCount": status.launcher.failed,
            _RUNNING: list(status.running),
            "currentScaler": _scaler(status.roster, key),
            **({} if status.roster is None else write_roster(status.roster)),
        }


TRAINING = TrainingJob(_VERSIONS, f"the annotation {MANAGER_ANNOTATION} to {US}", ("", US))


def gpus(template: Template) -> int:
    """Return the number of GPUs that the main container may use."""
    limits: Any = (main_container(template).get("resources") or {}).get("limits") or {}
    found = [(name, str(limit)) for name, limit in limits.items() if name.endswith(podobjects.GPU_SUFFIX)]
    return sum(parse_count(f"{template.path}: limit of {name}", limit) for name, limit in found)


def _workers(worker: Fields, template: Template, body: Body, job: str) -> Workers:
    replicas = worker.number("replicas", least=1, most=MOST_WORKERS) or 1
    least = worker.number("minReplicas", least=1) or 1
    most = worker.number("maxReplicas", least=1) or MOST_WORKERS
    if most < least:
        raise SpecError(worker.at("maxReplicas"), f"must not be below minReplicas={least}, got {most}")
    if not least <= replicas <= most:
        raise SpecError(worker.at("replicas"), f"must be from {least} to {most}, got {replicas}")
    roster = read_status(table(body, "status")).roster
    found = worker_names(job, replicas) if roster is None else roster.names
    bare = BarePods(replicas, _REPLICAS, worker.choice("restartPolicy", Restart, Restart.NEVER), roster)
    leaves = text(table(body, "metadata", "annotations"), LEAVE_CORDONED_ANNOTATION) == "true"
    return Workers(found, template, Elastic(least, most), bare, leave_cordoned=leaves)


def _launcher(launcher: Fields) -> Launcher:
    launcher.number("replicas", least=1, most=1)
    return Launcher(read_template(launcher, ""))


def _run_policy(spec: Fields, launcher: Fields, body: Body, patience: int | None) -> RunPolicy:
    restarts = spec.number("backoffLimit", least=0)
    allowed = _DEFAULT_RESTARTS if restarts is None else restarts
    is_restarted = spec.choice("restartPolicy", _JobRestart, _JobRestart.NEVER) is _JobRestart.ON_FAILURE
    is_recreated = launcher.text("restartPolicy") == "Always"
    annotations = table(body, "metadata", "annotations")
    return RunPolicy(
        clean=spec.choice("cleanPodPolicy", CleanPods, CleanPods.RUNNING),
        retries=allowed if is_restarted or is_recreated else 0,
        exits_are_final=is_recreated and not is_restarted,
        suspended=text(annotations, SUSPENDED_ANNOTATION) == "true",
        patience=patience,
        gave_up=text(annotations, GAVE_UP_ANNOTATION) == GAVE_UP,
    )


def _patience(body: Body) -> int | None:
    seconds = text(table(body, "metadata", "annotations"), PATIENCE_ANNOTATION)
    found = parse_count(f"metadata.annotations[{PATIENCE_ANNOTATION}]", seconds) if seconds else 0
    return found or None


def read_status(body: Body) -> JobStatus:
    """Return the status that an object holds."""
    running = body.get(_RUNNING)
    return replace(
        read_common(body, kinds.TRAINING_JOB),
        roster=read_roster(body),
        running=tuple(running) if isinstance(running, list) else (),
    )


def phase_of(status: JobStatus) -> str:
    """Return the phase: Created, Running, Scaling, Succeeded, Failed or Suspended; empty for a new job."""
    for kind in _PHASES:
        if status.is_true(kind):
            return kind
    if status.is_true(Type.RUNNING):
        is_scaling = status.roster is not None and status.roster.change is not None
        return Type.SCALING if is_scaling else Type.RUNNING
    return Type.CREATED if status.is_true(Type.CREATED) else ""


def _scaler(roster: Roster | None, key: JobKey) -> str:
    change = roster.change if roster is not None else None
    return f"{change.source}:{key.namespace}/{change.name}" if change is not None and change.name else ""


def _order(condition: Condition) -> tuple[bool, datetime, int]:
    """The order of the list: what holds comes last, and of that the newest."""
    return condition.status, condition.changed, list(Type).index(condition.type)


def read_scaler(source: Source, body: Body) -> Scaler:
    """Read one as the API server has it."""
    metadata = table(body, "metadata")
    scaler = Scaler(
        source=source,
        name=text(metadata, "name"),
        uid=text(metadata, "uid"),
        api_version=text(body, "apiVersion"),
        created=moment(metadata, "creationTimestamp"),
        count=None,
        pods=None,
        seconds=_SECONDS,
        force=podobjects.annotation(metadata, names.FORCE_ANNOTATION) == "true",
        owners=tuple(text(row, "uid") for row in rows(metadata, "ownerReferences")),
        is_controlled=bool(podobjects.controller(metadata)),
        problem="",
        unused=tuple(f"spec.{name}" for name in _UNUSED if table(body, "spec").get(name)),
        conditions=read_conditions(table(body, "status"), kinds.TRAINING_JOB),
        deleting="deletionTimestamp" in metadata,
    )
    try:
        return _asking(scaler, Fields(body, "").needed_table("spec"))
    except SpecError as error:
        return replace(scaler, problem=str(error))


def write_scaler_status(source: Source, conditions: Iterable[Condition], pods: Iterable[str]) -> dict[str, object]:
    """Return the status of one, with the workers that leave or join."""
    ordered = sorted(conditions, key=lambda one: (one.changed, list(Type).index(one.type)))
    start = next((one.changed for one in ordered if one.type is Type.SCALING), None)
    end = next((one.changed for one in ordered if one.type in (Type.SCALE_SUCCEEDED, Type.SCALE_FAILED)), None)
    times = {"startTime": start, "completionTime": end}
    return {
        "phase": str(ordered[-1].type) if ordered else "",
        "conditions": [condition_row(one, kinds.TRAINING_JOB) for one in ordered],
        "replicaStatuses": {},
        "restartCount": 0,
        _PODS[source]: list(pods),
        **{name: write_time(when) for name, when in times.items() if when is not None},
    }


def _asking(scaler: Scaler, spec: Fields) -> Scaler:
    seconds = spec.number("timeout", least=0)
    scaler = replace(scaler, seconds=_SECONDS if seconds is None else seconds)
    if scaler.source is Source.SCALE_OUT:
        wanted = spec.needed_table("toAdd")
        count = wanted.number("count", least=1)
        if count is None:
            raise SpecError(wanted.at("count"), "is missing")
        return replace(scaler, count=count)
    wanted = spec.needed_table("toDelete")
    count, is_named = wanted.number("count", least=1), wanted.has("podNames")
    if is_named == (count is not None):
        raise SpecError(wanted.path, "must have either count or podNames")
    pods = tuple(dict.fromkeys(wanted.texts("podNames")))
    if is_named and not pods:
        raise SpecError(wanted.at("podNames"), "is an empty list; name the workers to remove")
    return replace(scaler, count=count, pods=pods if is_named else None)
