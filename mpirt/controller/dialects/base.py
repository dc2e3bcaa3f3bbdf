"""
What the controller asks of a kind of job object.

Owns: the questions. A new kind of job is a module beside this one that answers them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.reading import Body
from mpirt.controller.model.spec import JobKey, JobSpec, Owner


class Dialect(Protocol):
    """A kind of job object."""

    @property
    def resource(self) -> Resource:
        """The object that is watched and whose status is written, in the version that is liked best."""
        ...

    @property
    def versions(self) -> Sequence[Resource]:
        """All versions that can be read, the best one first."""
        ...

    @property
    def remedy(self) -> str:
        """What to do where the API server serves none of them."""
        ...

    def owner(self, body: Body) -> Owner:
        """How the object is named by what it owns."""
        ...

    def is_ours(self, body: Body) -> bool:
        """Whether this controller may act on it."""
        ...

    def is_claimed(self, body: Body) -> bool:
        """Whether it names this controller, so that others keep off it."""
        ...

    @property
    def claim(self) -> str:
        """The field that names it, and the value."""
        ...

    def parse(self, body: Body) -> JobSpec:
        """What it asks for. Raises SpecError with the path of the first field that can't be."""
        ...

    def read_status(self, body: Body) -> JobStatus:
        """What was said of it last."""
        ...

    def write_status(self, status: JobStatus, key: JobKey) -> dict[str, object]:
        """Its status in its own shape."""
        ...
