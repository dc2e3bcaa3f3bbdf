"""
The interface of a planner, and the one of jobs.

Owns: what the loop and the daemon need from a kind of object that the controller runs. What a planner does with an
object is its own matter; jobs of all dialects share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from mpirt.controller.decisions.decide import decide
from mpirt.controller.dialects.base import Dialect, Kind
from mpirt.controller.model.actions import Plan, Rejection
from mpirt.controller.model.proofs import Answer
from mpirt.controller.model.reading import Body
from mpirt.controller.model.spec import Settings
from mpirt.controller.observed.nodes import Signal
from mpirt.controller.observed.observe import Cached, DepartedPods


@dataclass(frozen=True, slots=True)
class Around:
    """What a plan is made from, besides an object and the objects that concern it."""

    settings: Settings
    now: datetime
    departed: DepartedPods = ()
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """What pods have answered when asked whether they are in use, by their uids."""
    nodes: Mapping[str, Signal] | None = None
    """The nodes that are about to go; None if nodes can't be read."""
    heard: datetime | None = None
    """Since when the API server has answered without a break; None: for as long as it matters."""


class Planner(Protocol):
    """Plans for the objects of one kind."""

    @property
    def kind(self) -> Kind:
        """The kind."""
        ...

    def decide(self, body: Body, cached: Cached, rejections: Iterable[Rejection], around: Around) -> Plan:
        """
        Return the plan for the object in `body`. No I/O, no clock.

        Deterministic: the same input gives the same plan, and carrying a plan out twice does no harm.
        """
        ...


@dataclass(frozen=True, slots=True)
class JobPlanner:
    """Plans for jobs of one dialect."""

    kind: Dialect

    def decide(self, body: Body, cached: Cached, rejections: Iterable[Rejection], around: Around) -> Plan:
        """Return the plan for a job."""
        return decide(
            self.kind,
            body,
            cached,
            rejections,
            departed=around.departed,
            answers=around.answers,
            nodes=around.nodes,
            settings=around.settings,
            now=around.now,
            heard=around.heard,
        )
