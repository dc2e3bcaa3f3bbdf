"""
ScaleIn and ScaleOut: objects that ask for a change of a job's workers.

Owns: the value that both are read into. What becomes of one is decided in scaling/; its status is the record of
its outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from mpirt.controller.model.conditions import Condition, Type
from mpirt.controller.model.roster import Source


@dataclass(frozen=True, slots=True)
class Scaler:
    """One ScaleIn or ScaleOut."""

    source: Source
    name: str
    uid: str
    api_version: str
    created: datetime | None
    count: int | None = None
    """How many workers leave or join."""
    pods: tuple[str, ...] | None = None
    """The workers that leave, by name; None if they are not named."""
    seconds: int = 0
    """How long it may take."""
    force: bool = False
    """Whether workers go at the time limit even if they are still in use."""
    owners: tuple[str, ...] = ()
    """The uids of its owners."""
    is_controlled: bool = False
    """Whether one of its owners is its controller."""
    problem: str = ""
    """Why it is invalid; empty if it is not."""
    unused: tuple[str, ...] = ()
    """The fields that are set and have no effect."""
    conditions: Mapping[Type, Condition] = field(default_factory=dict)
    deleting: bool = False

    @property
    def kind(self) -> str:
        return str(self.source)

    @property
    def has_succeeded(self) -> bool:
        return Type.SCALE_SUCCEEDED in self.conditions

    @property
    def is_over(self) -> bool:
        """Whether its outcome is recorded: it never changes then."""
        return self.has_succeeded or Type.SCALE_FAILED in self.conditions
