"""
The interface of a dialect.

Owns: what the controller needs from a kind of job object. A new kind is another module here that implements it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mpirt import names
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.objectnames import LONGEST_JOB_NAME
from mpirt.controller.model.reading import Body, table, text
from mpirt.controller.model.spec import JobKey, JobSpec, Owner, RunPolicy, Scaler
from mpirt.errors import SpecError
from mpirt.fields import shown

# The manager that names this controller.
US = f"{names.PREFIX}/controller"
APPLY = "apply the CRD, for example with: kubectl apply -k crds/"
"""The remedy for each kind whose CRD is one of ours."""

_JOB_NAME = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object in the API."""

    versions: tuple[Resource, ...]
    """All versions that can be read, the preferred one first."""

    @property
    def resource(self) -> Resource:
        """Its resource in the preferred version."""
        return self.versions[0]

    def owner(self, body: Body) -> Owner:
        """Return an object for owner references and events, in the version in which it was read."""
        resource, metadata = self.resource, table(body, "metadata")
        key = JobKey(resource.kind, text(metadata, "namespace"), text(metadata, "name"))
        return Owner(text(body, "apiVersion") or resource.api_version, resource.kind, key, text(metadata, "uid"))


@dataclass(frozen=True, slots=True)
class Dialect(Kind, ABC):
    """Reads and writes one kind of job object."""

    claim: str
    """The field by which a job names this controller as its manager, and its value."""
    managers: tuple[str | None, ...]
    """The managers whose jobs run here."""

    def is_ours(self, body: Body) -> bool:
        """Whether this controller may act on the job."""
        return self.manager(body) in self.managers

    def is_claimed(self, body: Body) -> bool:
        """Whether the job names this controller as its manager, so that others leave it alone."""
        return self.manager(body) == US

    @abstractmethod
    def manager(self, body: Body) -> object:
        """Return what a job names as its manager, which may be of any type."""

    @abstractmethod
    def parse(self, body: Body) -> JobSpec:
        """Return the job's spec. Raises SpecError with the path of the first invalid field."""

    @abstractmethod
    def run_policy(self, body: Body) -> RunPolicy:
        """Return the job's run policy as far as it is valid, even if other fields are invalid."""

    @abstractmethod
    def read_status(self, body: Body) -> JobStatus:
        """Return the status that the object holds."""

    def scalers(self, objects: Mapping[str, Iterable[Body]]) -> tuple[Scaler, ...]:  # noqa: ARG002  as subclasses
        """Return the objects that ask for a change of the job's workers, the oldest first."""
        return ()

    @abstractmethod
    def write_status(self, status: JobStatus, key: JobKey) -> dict[str, object]:
        """Return the status in the form of the job object."""


def check_job_name(name: str) -> None:
    """Raise SpecError if no job can have this name."""
    if not _JOB_NAME.fullmatch(name) or len(name) > LONGEST_JOB_NAME:
        raise SpecError(
            "metadata.name",
            "must consist of lower-case letters, digits and hyphens, begin with a letter and have at most "
            f"{LONGEST_JOB_NAME} characters, because it is part of pod names and labels; got {shown(name)}",
        )
