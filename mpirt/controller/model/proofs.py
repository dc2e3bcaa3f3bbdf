"""
What is known about the commands in a worker that is about to leave.

Owns: the values. The pod itself is asked, by its keeper, which knows every command in it, whoever is connected.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Question:
    """Ask whether a command still runs in this container, now or at a later date."""

    pod: str
    uid: str
    container: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a pod has answered last."""

    at: datetime
    sessions: int | None = None
    """How many commands run in it; None if that could not be found out."""
    problem: str = ""
    """Why it could not."""
    idle_since: datetime | None = None
    """Since when every answer has been that none runs."""
