"""
When a launcher that has ended with code 0 is not believed.

Owns: the verdict on a launcher Job that is Complete, and what follows from it. mpirun of Open MPI 5 (PRRTE up to
3.0.14) ends with 0 when it loses a worker, and a shell line may drop any code. So an attempt in which a worker was
lost has failed, and counts against backoffLimit like any other; unless the job is elastic, or says that it copes.

The verdict is in the written history before anything is done about it, because the launcher Job, which shows how
many attempts have failed, is then replaced.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from mpirt.controller.decisions.lost_nodes import overlooking
from mpirt.controller.model.attempts import Disbelieved
from mpirt.controller.model.spec import JobSpec, RunPolicy
from mpirt.controller.observed.facts import failures, is_over, last_launcher_job, launcher_job_end
from mpirt.controller.observed.history import history
from mpirt.controller.observed.losses import losses
from mpirt.controller.observed.observe import Observed


def judged(spec: JobSpec | None, run: RunPolicy, observed: Observed, *, now: datetime) -> Observed:
    """Return what is observed, with the verdict on the existing launcher Job."""
    job, known = last_launcher_job(observed), observed.written_verdict
    if job is None:
        return observed
    if known is not None and known.job == job.uid:
        return replace(observed, disbelieved=known)
    end = launcher_job_end(observed)
    if end is None or not end.succeeded or is_over(observed) or not _needs_every_worker(spec, run):
        return observed
    happened = history(spec, overlooking(observed, now=now), now=now)
    if happened.last is None or losses(spec, observed, happened.last) is None:
        return observed
    count = failures(observed) + 1
    return replace(observed, disbelieved=Disbelieved(job.uid, count, final=count > run.retries))


def with_retries_left(spec: JobSpec, observed: Observed) -> JobSpec:
    """Return the spec with the retries that are left for the next launcher Job."""
    known = observed.written_verdict
    if known is None:
        return spec
    return replace(spec, run=replace(spec.run, retries=max(0, spec.run.retries - known.failures)))


def _needs_every_worker(spec: JobSpec | None, run: RunPolicy) -> bool:
    return not run.tolerates_losses if spec is None else spec.needs_every_worker
