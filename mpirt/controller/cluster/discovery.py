"""
Finds the version in which the API server serves a kind of object.

Owns: API discovery, and the last answer. CRDs come and go and change their versions while the controller runs: an
informer asks again whenever the version that it lists or watches is no longer served.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from mpirt.controller.cluster.link import Answer, Link, Request
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.reading import rows, text
from mpirt.controller.monitoring.logs import Log

_WITHIN = 10.0
_NOT_ALLOWED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class BadAnswer(Exception):
    """The API server has answered, but not with what was requested."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Forbidden(BadAnswer):
    """This process may not read the resource."""


class Unserved(BadAnswer):
    """The resource is not served: its CRD is missing, or no longer serves that version."""


class OtherVersion(Unserved):
    """The resource is served, but only in versions that this controller does not know."""


class Fixed:
    """A built-in resource, which every Kubernetes serves in the same version."""

    def __init__(self, resource: Resource, *, optional: bool = False) -> None:
        """`optional`: whether this process may do without it if it may not read it."""
        self.resource = resource
        self.optional = optional

    def find(self) -> Resource:
        """Return the resource."""
        return self.resource


class Discovery:
    """A kind that may be served in several versions. Every method may be called from any thread."""

    def __init__(
        self, link: Link, versions: Sequence[Resource], log: Log, *, remedy: str, optional: bool = False
    ) -> None:
        """`versions`: at least one, the preferred one first; `remedy`: what the user can do if none is served."""
        self.optional = optional
        self.resource = versions[0]
        """The version that was served last; before the first answer, the preferred one."""
        self._link = link
        self._versions = versions
        self._log = log
        self._remedy = remedy
        self._problem = ""
        self._has_found = False

    def find(self) -> Resource:
        """Ask for the preferred version among those served. Raises BadAnswer (also as Unserved) or Away."""
        found = self._served()
        if found is None:
            unserved = self._unserved()
            self._problem = str(unserved)
            raise unserved
        if not self._has_found or found != self.resource:
            self._log.info("version of the job resource", kind=found.kind, version=found.api_version)
        self.resource, self._has_found, self._problem = found, True, ""
        return found

    def now(self) -> Resource:
        """Return the version that was served last, without asking."""
        return self.resource

    def problem(self) -> str:
        """Return why no version can be used; empty if one can, or before the first answer."""
        return self._problem

    def _served(self) -> Resource | None:
        unknown: list[Resource] = []
        for resource in self._versions:
            answer = self._answer(resource.api_version)
            if answer.code in _NOT_ALLOWED:
                unknown.append(resource)
            elif self._has_kind(answer):
                return resource
        # Where discovery is not permitted, listing the objects will show whether the version is served.
        return unknown[0] if unknown else None

    def _unserved(self) -> Unserved:
        kind, wanted = self.resource.kind, " or ".join(each.api_version for each in self._versions)
        if others := self._others():
            return OtherVersion(
                f"the API server serves {kind} as {' and '.join(others)} only, which this controller can't run; "
                f'it needs {wanted}: see "Other CRDs" in docs/operations.md'
            )
        return Unserved(f"the API server serves no {kind} of {wanted}; {self._remedy}")

    def _others(self) -> list[str]:
        """Return the versions in which the kind is served, given that this controller knows no such version."""
        group, known = self.resource.group, {each.api_version for each in self._versions}
        served = [f"{group}/{text(row, 'version')}" for row in rows(self._answer(group).body, "versions")]
        return [each for each in served if each not in known and self._has_kind(self._answer(each))]

    def _has_kind(self, answer: Answer) -> bool:
        return any(text(row, "name") == self.resource.plural for row in rows(answer.body, "resources"))

    def _answer(self, group: str) -> Answer:
        """Ask for the versions of an API group, or for the resources of one version."""
        answer = self._link.ask(Request("get", "GET", f"/apis/{group}", "apiresources", within=_WITHIN))
        if answer.is_good or answer.code == HTTPStatus.NOT_FOUND or answer.code in _NOT_ALLOWED:
            return answer
        raise BadAnswer(answer.message, answer.retry_after)
