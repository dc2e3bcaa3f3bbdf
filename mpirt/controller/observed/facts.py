"""
Facts about a job: how many workers it has, whether its launcher runs, whether it is over.

Owns: deriving them from the job's objects, anew each time. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from mpirt import names
from mpirt.controller.model import kinds
from mpirt.controller.model.attempts import Stop
from mpirt.controller.model.conditions import Counts, JobStatus, Reason, Type
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, WORKERS_ANNOTATION
from mpirt.controller.model.reading import moment, number, table, text
from mpirt.controller.model.roster import Roster
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.departed import end_of
from mpirt.controller.observed.observe import Live, Observed, digest_of
from mpirt.controller.observed.pods import Pod


def pods_by_name(observed: Observed) -> dict[str, Pod]:
    """Return the workers' pods by their names."""
    return {pod.name: pod for pod in observed.workers}


def names_taken(observed: Observed) -> set[str]:
    """Return the names of workers that pods have, whoever owns these."""
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
    """Whether none of these workers is left; those never created count as gone."""
    pods = pods_by_name(observed)
    return all(name in roster.pending or is_gone(pods.get(name)) for name in names)


def all_usable(names: Iterable[str], observed: Observed) -> bool:
    """Whether commands may be started in all of these workers."""
    pods = pods_by_name(observed)
    return all(is_usable(pods.get(name)) for name in names)


RUN = (kinds.JOB, kinds.STATEFUL_SET)
"""The kinds of objects that belong to one run of a job: a rerun creates new ones."""


_GONE = (
    "the launcher Job was deleted while no controller watched it, so it is unknown how it ended; to run the job "
    f"again, annotate it with a new value of {names.RERUN_ANNOTATION}"
)


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a job ended."""

    succeeded: bool
    reason: str
    message: str
    at: datetime | None


def job_end(observed: Observed) -> JobEnd | None:
    """
    Return how the job ended; None while it has not.

    An end that the status shows is final, whatever has happened to the launcher Job since.
    """
    if not is_finished(observed.status):
        return launcher_job_end(observed)
    return None if is_reopened(observed) else _told_end(observed.status)


def _told_end(status: JobStatus) -> JobEnd:
    has_succeeded = status.is_true(Type.SUCCEEDED)
    told = status.conditions[Type.SUCCEEDED if has_succeeded else Type.FAILED]
    return JobEnd(has_succeeded, told.reason, told.message, status.completed)


def launcher_job_end(observed: Observed) -> JobEnd | None:
    """
    Return how the launcher Job ended, also one that was deleted since; None if it has not, or never existed.

    One that is Complete, and not believed, has failed if no retry is left, and not ended otherwise.
    """
    live = last_launcher_job(observed)
    if live is None or not live.uid:
        return _unseen_end(observed)
    status, row = table(live.body, "status"), end_of(live.body)
    if row is None:
        return None
    at = moment(status, "completionTime") or moment(row, "lastTransitionTime")
    if (doubt := observed.disbelieved) is not None:
        return JobEnd(succeeded=False, reason=Reason.WORKER_LOST, message="", at=at) if doubt.final else None
    return JobEnd(text(row, "type") == "Complete", text(row, "reason"), text(row, "message"), at)


def last_launcher_job(observed: Observed) -> Live | None:
    """
    Return the launcher Job or, if it was deleted while it ran, as the status says, that one as it was before.

    The status says so no more before the controller deletes a launcher Job itself.
    """
    return observed.live(kinds.JOB) or (observed.gone_job if observed.status.is_true(Type.RUNNING) else None)


def is_missed(observed: Observed) -> bool:
    """
    Whether the launcher has run, as the status says, and is gone without a trace.

    A launcher whose pod is left, and has not succeeded, is started again.
    """
    if kinds.JOB in observed.mine or not observed.status.is_true(Type.RUNNING):
        return False
    is_known = observed.gone_job is not None and observed.gone_job.uid != ""
    pods = (*observed.previous_launchers, *observed.departed_launchers)
    return not is_known and all(pod.phase == "Succeeded" for pod in pods)


def _unseen_end(observed: Observed) -> JobEnd | None:
    """Return the end of a job whose launcher Job is gone: it may have succeeded, and is not started again."""
    if observed.gone_job is None or not is_missed(observed):
        return None
    return JobEnd(succeeded=False, reason=Reason.LAUNCHER_GONE, message=_GONE, at=None)


def is_over(observed: Observed) -> bool:
    """Whether the status says that the job is over, and no rerun has begun."""
    return is_finished(observed.status) and not is_reopened(observed)


def asks_for_rerun(observed: Observed) -> bool:
    """Whether a rerun is requested of a job whose status says that it is over."""
    if not is_finished(observed.status):
        return False
    is_deleted = observed.rerun.when_deleted and kinds.JOB not in observed.mine
    return is_deleted or _has_new_rerun(observed)


def _has_new_rerun(observed: Observed) -> bool:
    # Without any record of the finished run, it is unknown whether the value is new.
    has_memory = observed.history is not None or kinds.CONFIG_MAP in observed.mine
    answered = observed.history.rerun if observed.history is not None else ""
    return has_memory and observed.rerun.value not in ("", answered)


def is_reopened(observed: Observed) -> bool:
    """Whether a requested rerun starts now: the objects of the finished run are gone."""
    is_left = bool(observed.workers) or any(kind in observed.mine for kind in RUN)
    return asks_for_rerun(observed) and not is_left


def is_finished(status: JobStatus) -> bool:
    """Whether the status says that the job is over."""
    return status.is_true(Type.SUCCEEDED) or status.is_true(Type.FAILED)


def is_forgotten(spec: JobSpec, observed: Observed) -> bool:
    """Whether a roster that was written is not in the status: the CRD has no field for it."""
    was_written = observed.status.written is not None and bool(observed.status.conditions)
    return spec.workers.bare is not None and was_written and observed.status.roster is None


def is_behind(workers: Live) -> bool:
    """Whether a StatefulSet's status is behind its spec. In old Kubernetes it is while a pod can't be created."""
    return number(table(workers.body, "status"), "observedGeneration") < workers.generation


def is_of_revision(workers: Live, pod: Pod) -> bool:
    """Whether a pod was created from the template that its StatefulSet has seen last."""
    return pod.revision == text(table(workers.body, "status"), "updateRevision")


def running_launcher(observed: Observed) -> Pod | None:
    """Return the launcher pod that runs, or has succeeded (its Job shows that later), and is not being deleted."""
    if observed.live(kinds.JOB) is None or observed.disbelieved is not None:
        return None
    running = [pod for pod in observed.launchers if pod.phase in ("Running", "Succeeded") and pod.deleted is None]
    return running[-1] if running else None


def outdated(spec: JobSpec, live: Live) -> Stop | None:
    """
    Return why the launcher Job has to be recreated; None if it has not.

    A missing digest was stripped by somebody and says nothing about the template: it is written again.
    """
    launcher, workers = spec.launcher_digest, spec.worker_digest
    if (digest_of(live, TEMPLATE_ANNOTATION) or launcher) != launcher:
        return Stop.LAUNCHER_CHANGED
    if spec.workers.elastic is None and (digest_of(live, WORKERS_ANNOTATION) or workers) != workers:
        return Stop.WORKERS_CHANGED
    return None


def failures(observed: Observed) -> int:
    """Return how many attempts of the launcher have failed, with those of Jobs that were not believed."""
    live, known = observed.mine.get(kinds.JOB, observed.gone_job), observed.disbelieved or observed.written_verdict
    earlier = 0 if known is None else known.failures
    if live is None or (known is not None and known.job == live.uid):
        return earlier
    return earlier + number(table(live.body, "status"), "failed")


def launcher_counts(observed: Observed, *, suspended: bool) -> Counts:
    """
    Return how many attempts of the launcher are active, have succeeded and have failed.

    Of a suspended job, the pods that still have a place on a node are active, here and of the workers: whoever
    admits jobs by a quota, such as Kueue, gives their place to another job when none is.
    """
    live = observed.mine.get(kinds.JOB)
    is_believed = live is not None and observed.disbelieved is None
    succeeded = number(table(live.body, "status"), "succeeded") if live is not None and is_believed else 0
    pods = (*observed.launchers, *observed.previous_launchers)
    active = _placed(pods) if suspended else sum(pod.phase == "Running" for pod in pods)
    counts = Counts(active, succeeded, failures(observed))
    if not is_over(observed):
        return counts
    before = observed.status.launcher
    return Counts(active, max(before.succeeded, succeeded), max(before.failed, counts.failed))


def worker_counts(observed: Observed, *, suspended: bool) -> Counts:
    """Return how many workers are usable, and how many have failed; one that is told to end may fail on that."""
    if suspended:
        active = _placed((*observed.workers, *observed.previous_workers))
    else:
        active = sum(pod.is_usable for pod in (*observed.workers, *left_to_job(observed)))
    return Counts(active, 0, sum(pod.phase == "Failed" and pod.deleted is None for pod in observed.workers))


def _placed(pods: Iterable[Pod]) -> int:
    """Return how many of the pods take up a place on a node."""
    return sum(not pod.is_over and pod.node != "" for pod in pods)
