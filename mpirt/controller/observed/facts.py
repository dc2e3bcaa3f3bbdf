"""
Everything known about a job at one moment, and the facts that follow from it.

Owns: the values, and deriving from them how many workers a job has, whether its launcher runs, whether it is over.
What a whole plan needs is a property, computed once. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from mpirt import names
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Answer, Rejection
from mpirt.controller.model.attempts import Failure, History, Stop
from mpirt.controller.model.conditions import Counts, JobStatus, Reason, Type
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, WORKERS_ANNOTATION
from mpirt.controller.model.reading import Body, moment, number, rows, table, text
from mpirt.controller.model.roster import Roster
from mpirt.controller.model.spec import JobSpec, Owner, Scaler
from mpirt.controller.observed.nodes import Signal
from mpirt.controller.observed.pods import FailedCreate, Pod

RUN = (kinds.JOB, kinds.STATEFUL_SET)
"""The kinds of objects that belong to one run of a job: a rerun creates new ones."""

_GONE = (
    "the launcher Job was deleted while no controller watched it, so it is unknown how it ended; to run the job "
    f"again, annotate it with a new value of {names.RERUN_ANNOTATION}"
)


@dataclass(frozen=True, slots=True)
class Live:
    """An object that exists."""

    kind: str
    namespace: str
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
    spec: Body
    status: Body
    body: Body


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended."""

    succeeded: bool
    reason: str
    message: str
    at: datetime | None = None


# Without slots, which would leave no place for the facts: one plan reads each of them many times.
@dataclass(frozen=True)
class Observed:
    """Everything known about a job at one moment, and what follows from it, computed once."""

    owner: Owner
    created: datetime | None
    """When the job was created."""
    status: JobStatus
    """The status in the job object."""
    now: datetime
    version: str = ""
    """Its resourceVersion."""
    history: History | None = None
    """The recorded history; None if there is none, as before the first status."""
    rerun: str = ""
    """The value of the job's annotation mpirt.dev/rerun: a new value runs the job again once it is over."""
    rerun_when_deleted: bool = False
    """Whether deleting its launcher Job runs it again, too."""
    mine: Mapping[str, Live] = field(default_factory=dict)
    """The objects that the job owns, by kind."""
    others: tuple[Live, ...] = ()
    """Objects that have the names of ours, but have another owner."""
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
    accepted: frozenset[str] = frozenset()
    """The digests of the dry runs that were accepted of late in the job's namespace, of this or other jobs."""
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
    failure: Failure | None = None
    """Set if the attempt of the existing launcher Job has failed, and the Job does not say that for good."""

    @property
    def written_failure(self) -> Failure | None:
        """The last attempt that has failed, by the recorded history."""
        return None if self.history is None else self.history.failure

    @property
    def paused_until(self) -> datetime | None:
        """When the next attempt may begin, if that is later than now."""
        return None if self.history is None else self.history.next_attempt(self.now)

    def live(self, kind: str) -> Live | None:
        """Return our object of that kind, unless it is being deleted."""
        found = self.mine.get(kind)
        return None if found is None or found.deleting else found

    @cached_property
    def workers_by_name(self) -> Mapping[str, Pod]:
        """The workers' pods by their names."""
        return {pod.name: pod for pod in self.workers}

    @cached_property
    def is_over(self) -> bool:
        """Whether the status says that the job is over, and no rerun has begun."""
        return self.status.is_finished and not self.is_reopened

    @cached_property
    def end(self) -> JobEnd | None:
        """
        How the job ended; None while it has not.

        An end that the status shows is final, whatever has happened to the launcher Job since.
        """
        if not self.status.is_finished:
            return self.launcher_end
        return None if self.is_reopened else _written_end(self.status)

    @cached_property
    def written_end(self) -> JobEnd | None:
        """How the job ended, once its status says that; None before."""
        return self.end if self.is_over else None

    @cached_property
    def launcher_end(self) -> JobEnd | None:
        """
        How the launcher Job ended, also one that was deleted since; None if it has not, or never existed.

        After an attempt that has failed, and is not the last, the job has not ended.
        """
        live = self.last_launcher_job
        if live is None or not live.uid:
            # It may have succeeded, and is not started again.
            is_unknown = self.gone_job is not None and self.is_missed
            return JobEnd(succeeded=False, reason=Reason.LAUNCHER_GONE, message=_GONE) if is_unknown else None
        status, row = live.status, end_of(live.body)
        if row is None:
            return None
        at = moment(status, "completionTime") or moment(row, "lastTransitionTime")
        if (failure := self.failure) is not None:
            return JobEnd(succeeded=False, reason=Reason.WORKER_LOST, message="", at=at) if failure.final else None
        return JobEnd(text(row, "type") == "Complete", text(row, "reason"), text(row, "message"), at)

    @property
    def last_launcher_job(self) -> Live | None:
        """
        The launcher Job or, if it was deleted while it ran, as the status says, that one as it was before.

        The status says so no more before the controller deletes a launcher Job itself.
        """
        return self.live(kinds.JOB) or (self.gone_job if self.status.is_true(Type.RUNNING) else None)

    @property
    def is_missed(self) -> bool:
        """
        Whether the launcher has run, as the status says, and is gone without a trace.

        A launcher whose pod is left, and has not succeeded, is started again.
        """
        if kinds.JOB in self.mine or not self.status.is_true(Type.RUNNING):
            return False
        is_known = self.gone_job is not None and self.gone_job.uid != ""
        others = [pod for pod in self.previous_launchers if pod not in self.kept_launchers]
        pods = (*others, *self.departed_launchers)
        return not is_known and all(pod.phase == "Succeeded" for pod in pods)

    @cached_property
    def asks_for_rerun(self) -> bool:
        """Whether a rerun is requested of a job whose status says that it is over."""
        if not self.status.is_finished:
            return False
        if self.rerun_when_deleted and kinds.JOB not in self.mine:
            return True
        # Without any record of the finished run, it is unknown whether the value is new.
        has_memory = self.history is not None or kinds.CONFIG_MAP in self.mine
        answered = self.history.rerun if self.history is not None else ""
        return has_memory and self.rerun not in ("", answered)

    @cached_property
    def is_reopened(self) -> bool:
        """Whether a requested rerun starts now: the objects of the finished run are gone."""
        is_left = bool(self.workers or self.kept_launchers) or any(kind in self.mine for kind in RUN)
        return self.asks_for_rerun and not is_left

    @cached_property
    def kept_launchers(self) -> tuple[Pod, ...]:
        """The pods of earlier attempts that have failed, kept for their logs."""
        return tuple(pod for pod in self.previous_launchers if self.owner.uid in pod.owners)

    @cached_property
    def running_launcher(self) -> Pod | None:
        """The launcher pod that runs, or has succeeded (its Job shows that later), and is not being deleted."""
        if self.live(kinds.JOB) is None or self.failure is not None:
            return None
        running = [pod for pod in self.launchers if pod.phase in ("Running", "Succeeded") and pod.deleted is None]
        return running[-1] if running else None

    @property
    def failures(self) -> int:
        """How many attempts of the launcher have failed."""
        live, known = self.mine.get(kinds.JOB, self.gone_job), self.failure or self.written_failure
        earlier = 0 if known is None else known.count
        if live is None or (known is not None and known.job == live.uid):
            return earlier
        return earlier + number(live.status, "failed")


def end_of(job: Body) -> Body | None:
    """Return the condition by which a batch/v1 Job has ended; None if it has not."""
    return _holding(job, "Complete", "Failed")


def failing_of(job: Body) -> Body | None:
    """Return the condition by which a batch/v1 Job fails; since Kubernetes 1.31 there is one before the end."""
    return _holding(job, "Failed", "FailureTarget")


def _holding(job: Body, *types: str) -> Body | None:
    """Return the first condition of a batch/v1 Job that is true and has one of these types; None without one."""
    found = (row for row in rows(table(job, "status"), "conditions") if text(row, "status") == "True")
    return next((row for row in found if text(row, "type") in types), None)


def _written_end(status: JobStatus) -> JobEnd:
    has_succeeded = status.is_true(Type.SUCCEEDED)
    row = status.conditions[Type.SUCCEEDED if has_succeeded else Type.FAILED]
    return JobEnd(has_succeeded, row.reason, row.message, status.completed)


def digest_of(live: Live, annotation: str) -> str:
    """Return the digest in an object's annotation or, if that was stripped, in its template's."""
    found = live.annotations.get(annotation)
    return found or text(table(live.spec, "template", "metadata", "annotations"), annotation)


def names_taken(observed: Observed) -> set[str]:
    """Return the names of workers that pods have, with any owner."""
    return {pod.name for pod in (*observed.workers, *observed.bare)} | {pod.name for pod in observed.strangers}


def is_gone(pod: Pod | None) -> bool:
    """Whether a worker whose pod was seen before has ended, or its pod does not exist any more."""
    return pod is None or pod.is_over


def is_dead(pod: Pod | None) -> bool:
    """Whether it is gone, or is being deleted."""
    return pod is None or pod.is_over or pod.deleted is not None


def is_usable(pod: Pod | None) -> bool:
    """Whether commands may be started in a worker."""
    return pod is not None and pod.is_usable


def is_outdated(pod: Pod | None, spec: JobSpec) -> bool:
    """Whether it was created from an earlier template."""
    return pod is not None and pod.template != spec.worker_digest


def is_leftover(stranger: Live, observed: Observed) -> bool:
    """Whether the pod will go by itself: it is being deleted, or belongs to an earlier job of the name."""
    owner = observed.owner
    return stranger.deleting or stranger.owner_name == f"{owner.kind} {owner.key.name}"


def left_to_job(observed: Observed) -> list[Pod]:
    """Return the workers that a finished job has kept, and whose StatefulSet is gone: they belong to the job."""
    return [pod for pod in observed.previous_workers if not pod.owner and observed.owner.uid in pod.owners]


def all_gone(names: Iterable[str], roster: Roster, observed: Observed) -> bool:
    """Whether all of these workers are gone; those never created count as gone."""
    pods = observed.workers_by_name
    return all(name in roster.pending or is_gone(pods.get(name)) for name in names)


def all_usable(names: Iterable[str], observed: Observed) -> bool:
    """Whether commands may be started in all of these workers."""
    pods = observed.workers_by_name
    return all(is_usable(pods.get(name)) for name in names)


def is_forgotten(spec: JobSpec, observed: Observed) -> bool:
    """Whether a roster that was written is not in the status: the CRD has no field for it."""
    was_written = observed.status.written is not None and bool(observed.status.conditions)
    return spec.workers.bare is not None and was_written and observed.status.roster is None


def is_behind(workers: Live) -> bool:
    """Whether a StatefulSet's status is behind its spec. In old Kubernetes it is while a pod can't be created."""
    return number(workers.status, "observedGeneration") < workers.generation


def is_of_revision(workers: Live, pod: Pod) -> bool:
    """Whether a pod was created from the template that its StatefulSet has seen last."""
    return pod.revision == text(workers.status, "updateRevision")


def outdated(spec: JobSpec, live: Live) -> Stop | None:
    """
    Return why the launcher Job has to be recreated; None if it has not.

    A missing digest was stripped by another client and says nothing about the template: it is written again.
    """
    launcher, workers = spec.launcher_digest, spec.worker_digest
    if (digest_of(live, TEMPLATE_ANNOTATION) or launcher) != launcher:
        return Stop.LAUNCHER_CHANGED
    if spec.workers.elastic is None and (digest_of(live, WORKERS_ANNOTATION) or workers) != workers:
        return Stop.WORKERS_CHANGED
    return None


def launcher_counts(observed: Observed, *, suspended: bool) -> Counts:
    """
    Return how many attempts of the launcher are active, have succeeded and have failed.

    Of a suspended job, the pods that still have a place on a node are active, here and of the workers: a
    controller that admits jobs by a quota, such as Kueue, gives their place to another job when there are none.
    """
    live = observed.mine.get(kinds.JOB)
    is_believed = live is not None and observed.failure is None
    succeeded = number(live.status, "succeeded") if live is not None and is_believed else 0
    pods = (*observed.launchers, *observed.previous_launchers)
    active = _placed(pods) if suspended else sum(pod.phase == "Running" for pod in pods)
    counts = Counts(active, succeeded, observed.failures)
    if not observed.is_over:
        return counts
    before = observed.status.launcher
    return Counts(active, max(before.succeeded, succeeded), max(before.failed, counts.failed))


def worker_counts(observed: Observed, *, suspended: bool) -> Counts:
    """Return how many workers are usable, and how many have failed; one that is asked to end may fail on that."""
    if suspended:
        active = _placed((*observed.workers, *observed.previous_workers))
    else:
        active = sum(pod.is_usable for pod in (*observed.workers, *left_to_job(observed)))
    return Counts(active, 0, sum(pod.phase == "Failed" and pod.deleted is None for pod in observed.workers))


def _placed(pods: Iterable[Pod]) -> int:
    """Return how many of the pods take up a place on a node."""
    return sum(not pod.is_over and pod.node != "" for pod in pods)
