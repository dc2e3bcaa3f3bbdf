"""
What keeps a job from being acted on.

Owns: which remembered rejections still matter, and which objects of others are in the way. No I/O.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpirt.controller.decisions.dry_runs import dry_run_digests
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.messages.status import Obstacle
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Manifest, Rejection
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.digests import digest
from mpirt.controller.model.reading import shortened
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.controller.observed.observe import Observed

# The characters kept of the API server's message; the rest repeats the object.
_LONGEST_REJECTION = 1024


def rejection_of(
    spec: JobSpec, observed: Observed, settings: Settings, wanted: Sequence[Manifest], *, gives_back: bool
) -> Rejection | None:
    """Return the first remembered rejection of something that is still desired."""
    if not observed.rejections:
        return None
    asked = {digest(one) for one in wanted}
    if not gives_back:
        asked |= {digest(launcher_job(spec, settings, held=held)) for held in (False, True)}
        asked |= dry_run_digests(spec, settings)
    return next((rejection for rejection in observed.rejections if rejection.digest in asked), None)


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
        whose = f"belongs to {owner}" if owner else "belongs to nobody"
        message = f"{live.kind} {live.name} exists and {whose}, and is left alone; delete it or rename the job"
        return Obstacle(Reason.EXISTS, message)
    if rejection is not None:
        said = shortened(rejection.message, _LONGEST_REJECTION)
        return Obstacle(Reason.REFUSED, f"the API server refuses {rejection.kind}: {said}")
    return None
