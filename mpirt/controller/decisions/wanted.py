"""
The objects that a job should have, but for its pods and its launcher Job.

Owns: which they are at this moment of the job's life, in the order of their creation. No I/O, no clock.
"""

from __future__ import annotations

from datetime import datetime

from mpirt.controller.decisions.budgets import wanted_budget
from mpirt.controller.decisions.cleanup import wants_workers, written_end
from mpirt.controller.decisions.gangs import wanted_group
from mpirt.controller.decisions.rights import launcher_rights
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.supporting import own_account, service, service_account
from mpirt.controller.manifests.workers import stateful_set
from mpirt.controller.messages.readiness import Readiness
from mpirt.controller.model.actions import Manifest
from mpirt.controller.model.attempts import History
from mpirt.controller.model.objectnames import HISTORY_ANNOTATION
from mpirt.controller.model.records import dump_history
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.controller.observed.facts import JobEnd
from mpirt.controller.observed.observe import Observed
from mpirt.controller.scaling.worker_actions import replicas_now


def wanted_objects(
    spec: JobSpec,
    observed: Observed,
    settings: Settings,
    workers: Readiness,
    happened: History,
    *,
    now: datetime,
) -> list[Manifest]:
    """Return the desired objects, except for the launcher Job."""
    end = written_end(observed)
    has_workers = wants_workers(spec, observed)
    has_set = has_workers and spec.workers.bare is None
    return [
        # The keeper's files are there only while there are workers: those of many finished jobs would fill etcd.
        _with_history(config_map(spec, settings.keepers if has_workers else {}), observed, happened),
        *([] if own_account(spec) else [service_account(spec)]),
        service(spec),
        *wanted_budget(spec, end, has_workers=has_workers),
        *(wanted_group(spec, observed, settings) if has_workers and end is None else []),
        *([_workers(spec, observed, settings, end, now=now)] if has_set else []),
        *launcher_rights(spec, observed, workers),
    ]


def _workers(
    spec: JobSpec, observed: Observed, settings: Settings, end: JobEnd | None, *, now: datetime
) -> Manifest:
    return stateful_set(
        spec,
        settings,
        replicas=replicas_now(spec, observed, now=now),
        has_previous=bool(observed.previous_workers),
        over=end is not None,
    )


def _with_history(manifest: Manifest, observed: Observed, happened: History) -> Manifest:
    """Return the ConfigMap, with the history in an annotation if the CRD drops it from the status."""
    status = observed.status
    if not status.conditions or status.history is not None or happened.is_plain:
        return manifest
    metadata = {**manifest["metadata"], "annotations": {HISTORY_ANNOTATION: dump_history(happened)}}
    return {**manifest, "metadata": metadata}
