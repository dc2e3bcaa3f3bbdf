"""
What keeps a job from being acted on: pod templates that fail a dry run, remembered rejections, objects of others.

Owns: which templates are tried before anything is created, changed or deleted for their sake, which rejections
still matter, which field of the job each refers to, and which objects of others are in the way. No I/O.

A template is tried inside the object that will hold it, a Job or a StatefulSet, with its name and all its labels,
so that policies judge the same object as later. A changed template of bare workers is not tried: a worker leaves
only after its successor was created.

The templates of a new job are not tried if an object that differs only by the job's name and uid was accepted of
late: nothing runs that a rejection of its objects could cost. A changed template is always tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from mpirt.controller.decisions.launching import wanted_launcher
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.runtime import is_copied
from mpirt.controller.manifests.workers import stateful_set, worker_pod
from mpirt.controller.messages.causes import whose
from mpirt.controller.messages.readiness import Obstacle
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Create, Manifest, Rejection
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, worker_name
from mpirt.controller.model.reading import digest, shortened
from mpirt.controller.model.roster import Roster
from mpirt.controller.model.spec import JobSpec, RuntimeVolume, Settings
from mpirt.controller.observed.facts import Live, Observed, digest_of
from mpirt.controller.observed.slim import written_digest

_Builder = Callable[[JobSpec, Settings], Manifest]


def dry_runs(spec: JobSpec, observed: Observed, settings: Settings) -> list[Create]:
    """Return the dry runs to make now: of both templates if neither object exists, later of the changed ones."""
    workers, job = observed.mine.get(kinds.STATEFUL_SET), observed.mine.get(kinds.JOB)
    if spec.run.suspended or observed.end is not None:
        return []
    is_new = workers is None and job is None and not observed.workers and spec.workers.roster is None
    asked: list[_Builder] = []
    if is_new or _is_another(job, spec.launcher_digest):
        asked.append(launcher_job)
    if spec.has_workers and (is_new or _is_another(workers, spec.worker_digest)):
        asked.append(_workers)
    known = observed.accepted if is_new else frozenset[str]()
    return [
        Create(build(spec, settings), "dry-run of the pod template", tried_as, dry_run=True)
        for build in asked
        if (tried_as := _digest(build, spec, settings)) not in known
    ]


def dry_run_digests(spec: JobSpec, settings: Settings) -> set[str]:
    """Return the digests under which the answers to these dry runs are remembered."""
    asked: list[_Builder] = [launcher_job, _workers] if spec.has_workers else [launcher_job]
    return {_digest(build, spec, settings) for build in asked}


def _digest(build: _Builder, spec: JobSpec, settings: Settings) -> str:
    """Return a digest of the object that is the same for jobs that differ only by name and uid."""
    nameless = replace(spec, owner=replace(spec.owner, key=replace(spec.key, name=""), uid=""))
    # Not the digest of the object itself: an object that passes its dry run may still exceed a quota.
    return digest(build(nameless, settings), "dry-run")


def _workers(spec: JobSpec, settings: Settings) -> Manifest:
    """Return the object by which the workers' template is tried: of bare pods, the first worker ever."""
    if spec.workers.bare is None:
        return stateful_set(spec, settings)
    return worker_pod(spec, settings, worker_name(spec.key.name, 0), Roster())


def refused_field(spec: JobSpec, rejection: Rejection) -> str:
    """Return the field of the job that a rejected object was built from; empty if it was built from several."""
    if rejection.kind == kinds.JOB:
        return spec.launcher.template.path
    return spec.workers.template.path if rejection.kind in (kinds.STATEFUL_SET, kinds.POD) else ""


def _is_another(live: Live | None, wanted: str) -> bool:
    if live is None or live.deleting:
        return False
    return (digest_of(live, TEMPLATE_ANNOTATION) or wanted) != wanted


# Objects of others are not watched, and no event tells when the reason of a rejection is gone.
LOOK_AGAIN = timedelta(seconds=30)
# The characters kept of the API server's message; the rest repeats the object.
_LONGEST_REJECTION = 1024


def rejection_of(
    spec: JobSpec, observed: Observed, settings: Settings, wanted: Sequence[Manifest], *, gives_back: bool
) -> Rejection | None:
    """Return the first remembered rejection of something that is still desired."""
    if not observed.rejections:
        return None
    asked = {written_digest(one) for one in wanted}
    if not gives_back:
        asked |= {_launcher_digest(spec, observed, settings), *dry_run_digests(spec, settings)}
    return next((rejection for rejection in observed.rejections if rejection.digest in asked), None)


def _launcher_digest(spec: JobSpec, observed: Observed, settings: Settings) -> str:
    """Return the digest under which a rejection of the launcher Job is remembered."""
    return digest(wanted_launcher(spec, observed, settings))


def with_accepted_runtime(spec: JobSpec, observed: Observed, settings: Settings) -> Settings:
    """
    Return the settings by which the runtime is copied, if the API server refuses it as a volume.

    Policies may name the kinds of volumes that they permit, and most were written before there were images.
    """
    if not observed.rejections or settings.runtime_volume is not RuntimeVolume.AUTO:
        return settings
    launcher = {_launcher_digest(spec, observed, settings), _digest(launcher_job, spec, settings)}
    if is_copied(spec, settings) or all(one.digest not in launcher for one in observed.rejections):
        return settings
    return replace(settings, why_copied="the API server refuses it as an image volume")


def refusal(rejection: Rejection) -> str:
    """Return what a rejection means for the field that it is about."""
    return f"the API server refuses it: {shortened(rejection.message, _LONGEST_REJECTION)}"


def obstacle_of(observed: Observed, rejection: Rejection | None, wanted: Sequence[Manifest]) -> Obstacle | None:
    """Return what keeps the job from being acted on; None if nothing does."""
    needed = {str(manifest["kind"]) for manifest in wanted} | {kinds.JOB, kinds.ROLE, kinds.ROLE_BINDING}
    for live in observed.others:
        if live.kind not in needed:
            continue
        owner = live.owner_name
        if owner == f"{observed.owner.kind} {observed.owner.key.name}":
            message = f"{live.kind} {live.name} belongs to a previous job of this name; waiting for its deletion"
            return Obstacle(Reason.WORKERS_NOT_READY, message)
        message = (
            f"{live.kind} {live.name} exists and {whose(owner)}, and is left alone; delete it or rename the job"
        )
        return Obstacle(Reason.EXISTS, message)
    if rejection is not None:
        said = shortened(rejection.message, _LONGEST_REJECTION)
        return Obstacle(Reason.REFUSED, f"the API server refuses {rejection.kind}: {said}")
    return None
