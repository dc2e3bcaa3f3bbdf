"""
Jobs for which another controller has created objects, but started no launcher.

Owns: the decision to take such a job over, and the status of one that is left alone. If both controllers handled a
job, each would undo what the other does. So a job is taken over only if it names us as its manager, which keeps
the others off it. A rival that does nothing is not necessarily gone: its job may be waiting for capacity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from mpirt.controller.messages.status import Said, conditions
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete
from mpirt.controller.model.conditions import JobStatus, Reason, Type
from mpirt.controller.observed.observe import Observed
from mpirt.controller.observed.rivals import Rival, last_made, made_by_another, rival

# A rival that works creates all that a job needs within seconds.
QUIET = timedelta(minutes=1)

_WHY = "made by another controller, and the job names this one as its manager"


def is_taken_over(observed: Observed) -> bool:
    """Whether objects of another controller have to be deleted before ours are created."""
    if rival(observed) is not Rival.BEGAN or not observed.claimed:
        return False
    return bool(observed.bare) or kinds.JOB in observed.mine


def removals(observed: Observed) -> list[Action]:
    """
    Return the deletions of the rival's launcher Job and pods. Patches make its other objects ours.

    No launcher has started, so no work is lost.
    """
    job = observed.mine.get(kinds.JOB)
    gone: list[Action] = []
    if job is not None and not job.deleting:
        gone.append(Delete(kinds.JOB, job.name, job.uid, _WHY))
    gone += [Delete(kinds.POD, pod.name, pod.uid, _WHY) for pod in observed.bare if pod.deleted is None]
    return gone


def taking_over(observed: Observed, *, now: datetime) -> JobStatus:
    """Return the status while these objects terminate."""
    what = made_by_another(observed)[-1]
    message = f"taking the job over; waiting for {what} of another controller to terminate"
    return _with_running(observed, Reason.WORKERS_NOT_READY, message, now=now)


def told_from(observed: Observed) -> datetime | None:
    """Return from when on the status says that the job is another controller's; None if it does not."""
    if rival(observed) is not Rival.BEGAN:
        return None
    made = last_made(observed)
    return None if made is None else made + QUIET


def left_alone(observed: Observed, manager: str, *, now: datetime) -> JobStatus:
    """Return the status of a job that does not start. It says what to do about that."""
    what = made_by_another(observed)[0]
    message = (
        f"{what} was made by another controller, such as mpi-operator or training-operator, and no launcher has "
        "started; the job is left to that controller. If that one no longer runs, set "
        f"{manager} to have the job run here"
    )
    return _with_running(observed, Reason.RUN_BY_ANOTHER, message, now=now)


def _with_running(observed: Observed, reason: Reason, message: str, *, now: datetime) -> JobStatus:
    """Return the previous status with this condition Running. The rest stays: it may be another controller's."""
    before = observed.status
    said: Mapping[Type, Said] = {Type.RUNNING: (False, reason, message)}
    return replace(before, conditions={**before.conditions, **conditions(before.conditions, said, now=now)})
