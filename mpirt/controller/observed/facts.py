"""
What the objects of a job come to: how many workers are there, whether the launcher runs, whether it is over.

Owns: reading the state of a job off its objects, afresh each time. Decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Counts, JobStatus, Reason, Type
from mpirt.controller.model.digests import launcher_digest, worker_digest
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, WORKERS_ANNOTATION
from mpirt.controller.model.reading import moment, number, rows, table, text
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.observe import Live, Observed
from mpirt.controller.observed.pods import Pod


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How the launcher Job came to its end."""

    succeeded: bool
    reason: str
    message: str
    at: datetime | None


def job_end(observed: Observed) -> JobEnd | None:
    """The launcher Job's end; None while it isn't there or not at its end."""
    live = observed.live(kinds.JOB)
    status = table(live.body, "status") if live is not None else {}
    for row in rows(status, "conditions"):
        if text(row, "type") in ("Complete", "Failed") and text(row, "status") == "True":
            return JobEnd(
                succeeded=text(row, "type") == "Complete",
                reason=text(row, "reason"),
                message=text(row, "message"),
                at=moment(status, "completionTime") or moment(row, "lastTransitionTime"),
            )
    return None


def is_finished(status: JobStatus) -> bool:
    """Whether the status says that the job is over: a spec that could not be read ends no job."""
    failed = status.conditions.get(Type.FAILED)
    has_failed = failed is not None and failed.status and failed.reason != Reason.INVALID
    return status.is_true(Type.SUCCEEDED) or has_failed


def is_behind(workers: Live) -> bool:
    """Whether a StatefulSet hasn't told of its last change. Old ones never do where they can't make a pod."""
    return number(table(workers.body, "status"), "observedGeneration") < workers.generation


def is_of_revision(workers: Live, pod: Pod) -> bool:
    """Whether a pod was made from the template that its StatefulSet has seen last."""
    return pod.revision == text(table(workers.body, "status"), "updateRevision")


def running_launcher(observed: Observed) -> Pod | None:
    """The launcher's pod, if it runs and is to go on, or has ended well: its Job takes note of that later."""
    if observed.live(kinds.JOB) is None:
        return None
    running = [pod for pod in observed.launchers if pod.phase in ("Running", "Succeeded") and pod.deleted is None]
    return running[-1] if running else None


def is_outdated(spec: JobSpec, live: Live) -> str:
    """Why the launcher Job has to be made anew; nothing if it hasn't."""
    if live.annotations.get(TEMPLATE_ANNOTATION) != launcher_digest(spec):
        return "the launcher's template was changed"
    if spec.workers.elastic is None and live.annotations.get(WORKERS_ANNOTATION) != worker_digest(spec):
        return "the workers' template was changed"
    return ""


def failures(observed: Observed) -> int:
    """How many attempts of the launcher have failed."""
    live = observed.mine.get(kinds.JOB)
    return number(table(live.body, "status"), "failed") if live is not None else 0


def launcher_counts(observed: Observed) -> Counts:
    """How the launcher's attempts are doing."""
    live = observed.mine.get(kinds.JOB)
    succeeded = number(table(live.body, "status"), "succeeded") if live is not None else 0
    active = sum(pod.phase == "Running" for pod in observed.launchers)
    return Counts(active, succeeded, failures(observed))


def worker_counts(observed: Observed) -> Counts:
    """How the workers are doing."""
    active = sum(pod.is_usable for pod in observed.workers)
    return Counts(active, 0, sum(pod.phase == "Failed" for pod in observed.workers))
