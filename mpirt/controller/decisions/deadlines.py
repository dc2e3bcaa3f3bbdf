"""
Which moments a job has to wait for.

Owns: until when an end is not reported yet, and when the time that a job may take is over.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.model import kinds
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import JobEnd, is_finished, is_over, job_end
from mpirt.controller.observed.observe import Observed

# A Job and its pod come by different watches, in any order. An end is reported once, with its cause.
CAUSE_WITHIN = timedelta(seconds=5)
# From the last container's end until its node has told of it and Kubernetes has seen that it was the last.
END_WITHIN = timedelta(seconds=15)


def awaited(spec: JobSpec, observed: Observed) -> datetime | None:
    """Until when an end is not reported yet, because the Job or its pod has not shown it."""
    end = job_end(observed)
    if end is None:
        since, within = _succeeded_since(observed) or _exhausted_since(spec, observed), END_WITHIN
    else:
        since, within = _unexplained_since(observed, end), CAUSE_WITHIN
    return None if since is None else since + within


def due(spec: JobSpec, observed: Observed) -> datetime | None:
    """When the time that the job may take is over, if it is limited; waiting for workers is a part of it."""
    started = observed.status.started
    if spec.run.deadline is None or spec.run.suspended or started is None or is_finished(observed.status):
        return None
    return started + timedelta(seconds=spec.run.deadline)


def shortened_run(spec: JobSpec) -> JobSpec:
    """The same with a deadline that a launcher Job has passed at once: it counts from its own start."""
    return replace(spec, run=replace(spec.run, deadline=1))


def _unexplained_since(observed: Observed, end: JobEnd) -> datetime | None:
    """When the Job failed, if its pod has not been seen to fail: the cause is still on its way."""
    pods = observed.launchers
    is_seen = any(pod.phase == "Failed" for pod in pods) and all(pod.is_over for pod in pods)
    return None if end.succeeded or is_over(observed) or is_seen else end.at


def _succeeded_since(observed: Observed) -> datetime | None:
    """When the launcher's pod ended well, if its Job has not taken note of that yet."""
    if not observed.launchers or observed.live(kinds.JOB) is None:
        return None
    last = observed.launchers[-1]
    return last.ended if last.phase == "Succeeded" else None


def _exhausted_since(spec: JobSpec, observed: Observed) -> datetime | None:
    """When the last attempt that the job may make failed; None while there may be another."""
    pods = observed.launchers
    may_try = len(pods) <= spec.run.retries or any(pod.phase != "Failed" for pod in pods)
    if may_try or observed.live(kinds.JOB) is None:
        return None
    return pods[-1].ended
