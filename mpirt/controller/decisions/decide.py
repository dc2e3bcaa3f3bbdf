"""
Plans for the objects of one kind: the interface, and the plan for one job object.

Owns: what the loop and the daemon need from a planner, and the order of the steps for a job: is it ours, what is
observed, is the spec valid, what is to be done. Jobs of all dialects share one planner. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from mpirt.controller.decisions.desired import with_gang
from mpirt.controller.decisions.invalid_specs import plan_of_impossible, plan_of_invalid
from mpirt.controller.decisions.plan import make_plan
from mpirt.controller.dialects.base import Dialect, Kind
from mpirt.controller.model.actions import Plan, Rejection
from mpirt.controller.model.conditions import Reason
from mpirt.controller.model.reading import Body, table
from mpirt.controller.observed.facts import is_forgotten
from mpirt.controller.observed.observe import Cached, Circumstances, observe
from mpirt.controller.scaling.room import with_room
from mpirt.errors import SpecError


class Planner(Protocol):
    """Plans for the objects of one kind."""

    @property
    def kind(self) -> Kind:
        """The kind."""
        ...

    def decide(self, body: Body, cached: Cached, rejections: Iterable[Rejection], around: Circumstances) -> Plan:
        """
        Return the plan for the object in `body`. No I/O, no clock.

        Deterministic: the same input gives the same plan, and carrying a plan out twice does no harm.
        """
        ...


@dataclass(frozen=True, slots=True)
class JobPlanner:
    """Plans for jobs of one dialect."""

    kind: Dialect

    def decide(self, body: Body, cached: Cached, rejections: Iterable[Rejection], around: Circumstances) -> Plan:
        """Return the plan for a job."""
        return decide(self.kind, body, cached, rejections, around)


# Immutable fields: an error in one of them is final.
_FIXED = frozenset({"metadata.name"})

_FORGETFUL = (
    "the installed CRD drops status.scaling, in which the controller keeps what it has begun; "
    "install the one of this version: kubectl apply -k crds/"
)


def decide(
    dialect: Dialect, body: Body, cached: Cached, rejections: Iterable[Rejection], around: Circumstances
) -> Plan:
    """
    Return the plan for a job.

    Deterministic: the same input gives the same plan, and carrying a plan out twice does no harm.
    """
    settings = around.settings
    is_left_to_others = settings.only_claimed and not dialect.is_claimed(body)
    if "deletionTimestamp" in table(body, "metadata") or not dialect.is_ours(body) or is_left_to_others:
        return Plan()
    observed = observe(
        body,
        cached,
        rejections,
        around,
        owner=dialect.owner(body),
        status=dialect.read_status(body),
        scalers=dialect.scalers(cached),
    )
    try:
        spec = with_room(dialect, dialect.parse(body), settings)
    except SpecError as error:
        if error.field in _FIXED:
            return plan_of_impossible(dialect, str(error), observed)
        return plan_of_invalid(dialect, dialect.run_policy(body), str(error), observed)
    if is_forgotten(spec, observed):
        return plan_of_invalid(dialect, spec.run, _FORGETFUL, observed, reason=Reason.REFUSED)
    return make_plan(dialect, with_gang(spec, settings), observed, settings)
