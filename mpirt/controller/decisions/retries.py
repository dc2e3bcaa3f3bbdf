"""
Attempts that have failed: which ones, what is kept of them, and when the next may begin.

Owns: the verdict on a launcher Job, the actions that make room for the next one, and the pause before it.

Each attempt is a launcher Job without retries. So the controller, not the Job controller of Kubernetes, decides
whether and when another follows: at once, as long as attempts do not end soon after their start. The verdict is in
the written history before anything is done about it: by then the Job, and with it what it shows, is deleted. Its
pods stay, with their logs: the job owns them, too.

mpirun of Open MPI 5 (PRRTE up to 3.0.14) ends with 0 when it loses a worker, and a shell line may drop any code.
So an attempt in which a worker was lost has failed, and counts against backoffLimit like any other; unless the job
is elastic, or says that it copes.
"""

from __future__ import annotations

from dataclasses import replace

from mpirt.controller.decisions.lost_nodes import overlooking
from mpirt.controller.decisions.run_policy import CAUSE_WITHIN, is_overdue
from mpirt.controller.messages.causes import NO_MORE_ATTEMPTS
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete
from mpirt.controller.model.attempts import Failure
from mpirt.controller.model.conditions import Type
from mpirt.controller.model.reading import moment, text
from mpirt.controller.model.spec import JobSpec, RunPolicy
from mpirt.controller.observed.facts import Live, Observed, failing_of
from mpirt.controller.observed.history import history
from mpirt.controller.observed.losses import losses
from mpirt.controller.scaling.worker_actions import adoption_by_job


def judged(spec: JobSpec | None, run: RunPolicy, observed: Observed) -> Observed:
    """Return what is observed, with the verdict on the existing launcher Job."""
    job, known = observed.last_launcher_job, observed.written_failure
    if job is None:
        return observed
    if known is not None and known.job == job.uid:
        return replace(observed, failure=known)
    if observed.is_over:
        return observed
    count = (0 if known is None else known.count) + 1
    is_last, at = count > run.retries, observed.now.replace(microsecond=0)
    if observed.launcher_end is not None and observed.launcher_end.succeeded:
        has_lost = _has_lost_a_worker(spec, run, observed)
        return replace(observed, failure=Failure(job.uid, count, at, is_last, has_lost)) if has_lost else observed
    if is_last or is_overdue(run, observed) or not _has_failed(run, observed, job):
        return observed
    return replace(observed, failure=Failure(job.uid, count, at))


def _has_failed(run: RunPolicy, observed: Observed, job: Live) -> bool:
    """
    Whether the attempt has failed in a way that may be tried again, by its Job or, seconds earlier, by its pod.

    Where an exit is final, it depends on the pod's containers, and the Job decides. Jobs and pods come by separate
    watches: an end is waited for that the Job shows first, since the cause is the pod's.
    """
    pods = observed.launchers
    if (row := failing_of(job.body)) is None:
        is_left = observed.live(kinds.JOB) is not None
        return is_left and bool(pods) and pods[-1].phase == "Failed" and not run.exits_are_final
    at, is_seen = moment(row, "lastTransitionTime"), all(pod.is_over or pod.was_deleted for pod in pods)
    is_explained = is_seen or at is None or at + CAUSE_WITHIN <= observed.now
    return is_explained and text(row, "reason") == NO_MORE_ATTEMPTS


def _has_lost_a_worker(spec: JobSpec | None, run: RunPolicy, observed: Observed) -> bool:
    """Whether a worker was lost while the launcher, which has succeeded, ran."""
    if run.tolerates_losses if spec is None else not spec.needs_every_worker:
        return False
    last = history(spec, overlooking(observed)).last
    return last is not None and losses(spec, observed, last) is not None


def cleared(observed: Observed, job: Live) -> list[Action]:
    """Return what removes the Job of an attempt that has failed: its pods stay until the job is deleted."""
    if observed.written_failure != observed.failure or observed.status.is_true(Type.RUNNING):
        return []
    others = [pod for pod in observed.launchers if observed.owner.uid not in pod.owners]
    kept = [adoption_by_job(pod, observed.owner) for pod in others]
    return [*kept, Delete(kinds.JOB, job.name, job.uid, "its attempt has failed")]
