"""
In which pods the launcher may start commands, and when it gets that right.

Owns: the names in its Role. A right by name is a right in whatever pod has the name, so only pods that the job
owns are named. A StatefulSet gives a pod's name to the next one within milliseconds, also while no controller
runs. So a name stays while the job runs, unless the StatefulSet can't create that pod: another one may have it.
"""

from __future__ import annotations

from mpirt.controller.decisions.cleanup import wants_workers, written_end
from mpirt.controller.decisions.launching import is_time
from mpirt.controller.manifests.supporting import role, role_binding
from mpirt.controller.messages.readiness import Readiness
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Manifest
from mpirt.controller.model.objectnames import worker_number
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.digested import named_workers
from mpirt.controller.observed.members import is_dead
from mpirt.controller.observed.observe import Observed
from mpirt.controller.observed.pod_events import why_not_created


def launcher_rights(spec: JobSpec, observed: Observed, workers: Readiness) -> list[Manifest]:
    """Return the Role and its binding; before the launcher is created, they would change with each worker."""
    is_begun = bool(observed.mine.keys() & {kinds.ROLE, kinds.ROLE_BINDING, kinds.JOB})
    if not (is_begun or not spec.has_workers or is_time(spec, workers)):
        return []
    return [role(spec, _may_enter(spec, observed)), role_binding(spec)]


def _may_enter(spec: JobSpec, observed: Observed) -> list[str]:
    """Return the names of the pods in which the launcher may start commands."""
    if not wants_workers(spec, observed):
        return []
    if spec.workers.bare is not None:
        # Their names are never used again.
        return [pod.name for pod in observed.workers if not is_dead(pod)]
    owned = {pod.name for pod in observed.workers}
    expected = _expected(spec, observed, owned) if written_end(observed) is None else set()
    return sorted(owned | expected, key=worker_number)


def _expected(spec: JobSpec, observed: Observed, owned: set[str]) -> set[str]:
    """Return the workers that had a right and are about to be created again."""
    workers, role = observed.live(kinds.STATEFUL_SET), observed.live(kinds.ROLE)
    if workers is None or role is None:
        return set()
    absent = (named_workers(spec.key.name, role.body) & set(spec.workers.names)) - owned
    return {name for name in absent if not _is_blocked(name, workers.uid, observed)}


def _is_blocked(name: str, workers: str, observed: Observed) -> bool:
    return bool(why_not_created(observed.failed_creates, workers, observed.workers, name))
