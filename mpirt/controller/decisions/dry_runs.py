"""
Whether the API server would take the pods: asked before anything is made, changed or ended for their sake.

Owns: the dry runs, and which field of the job a refusal means. Workers are tried as a Job, too: a StatefulSet of
their name may be there already, and a dry run would say that instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.meta import head
from mpirt.controller.manifests.workers import worker_template
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Create, Refusal
from mpirt.controller.model.digests import digest, launcher_digest, worker_digest
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, object_name
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.controller.observed.facts import job_end
from mpirt.controller.observed.observe import Live, Observed

_REPLICAS = "spec.mpiReplicaSpecs"


def trials(spec: JobSpec, observed: Observed, settings: Settings) -> list[Create]:
    """What is to be asked now: both templates of a job that has nothing yet, later those that were changed."""
    workers, job = observed.mine.get(kinds.STATEFUL_SET), observed.mine.get(kinds.JOB)
    if spec.run.suspended or job_end(observed) is not None:
        return []
    is_new = workers is None and job is None
    asked = []
    if is_new or _is_another(job, launcher_digest(spec)):
        asked.append(launcher_job(spec, settings))
    if spec.has_workers and (is_new or _is_another(workers, worker_digest(spec))):
        asked.append(workers_as_job(spec, settings))
    return [Create(manifest, "would its pods be taken?", digest(manifest), dry_run=True) for manifest in asked]


def workers_as_job(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """A Job whose pods would be the workers; it is never made."""
    pod = {**worker_template(spec, settings)["spec"], "restartPolicy": "Never"}
    wanted = head(spec, kinds.JOB)
    wanted["metadata"]["name"] = object_name(kinds.STATEFUL_SET, spec.key.name)
    # Labels and annotations the StatefulSet answers for; among a Job's some are not the user's to set.
    return {**wanted, "spec": {"template": {"spec": pod}}}


def refused_field(refusal: Refusal, spec: JobSpec, settings: Settings) -> str:
    """The field of the job that a refused object was built from; nothing if it was from several."""
    of_workers = spec.has_workers and refusal.digest == digest(workers_as_job(spec, settings))
    if refusal.kind == kinds.STATEFUL_SET or of_workers:
        return f"{_REPLICAS}.Worker.template"
    return f"{_REPLICAS}.Launcher.template" if refusal.kind == kinds.JOB else ""


def _is_another(live: Live | None, wanted: str) -> bool:
    annotations: Mapping[str, str] = live.annotations if live is not None and not live.deleting else {}
    return annotations.get(TEMPLATE_ANNOTATION, wanted) != wanted
