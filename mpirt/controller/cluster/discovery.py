"""
Under which version the API server serves the job object.

Owns: asking it, by API discovery, and keeping the last answer. CRDs come and go and change their versions while a
controller runs: an informer asks again whenever the version that it lists or watches is no longer there.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from mpirt.controller.cluster.link import Answer, Link, Request, path
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.reading import rows, text
from mpirt.controller.monitoring.logs import Log

_WITHIN = 10.0
_NOT_ALLOWED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class BadAnswer(Exception):
    """The API server answers, but not with what was asked for."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unserved(BadAnswer):
    """There is no such resource: its CRD is missing, or no longer serves that version."""


class Fixed:
    """A resource that every Kubernetes serves under one version."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource

    def find(self) -> Resource:
        """The resource."""
        return self.resource

    def problem(self) -> str:
        """Nothing."""
        return ""


class Discovery:
    """One kind that may be served under several versions. Every method may be called from any thread."""

    def __init__(self, link: Link, versions: Sequence[Resource], log: Log, *, remedy: str) -> None:
        """`versions`: the best one first, at least one; `remedy`: what to do where none is served."""
        self.resource = versions[0]
        """The version that is served, as far as is known; before the first answer the best one."""
        self._link = link
        self._versions = versions
        self._log = log
        self._remedy = remedy
        self._problem = ""
        self._has_found = False

    def find(self) -> Resource:
        """Ask for the best version that is served. Raises BadAnswer, of which Unserved is one, or Away."""
        found = self._served()
        if found is None:
            groups = " or ".join(each.api_version for each in self._versions)
            self._problem = f"the API server serves no {self.resource.kind} of {groups}; {self._remedy}"
            raise Unserved(self._problem)
        if not self._has_found or found != self.resource:
            self._log.info("version of the job resource", kind=found.kind, version=found.api_version)
        self.resource, self._has_found, self._problem = found, True, ""
        return found

    def now(self) -> Resource:
        """The version that is served, as far as is known."""
        return self.resource

    def problem(self) -> str:
        """Why there is no version to use; empty if there is one, or nobody has asked yet."""
        return self._problem

    def _served(self) -> Resource | None:
        answers = ((each, self._answer(each)) for each in self._versions)
        unknown: list[Resource] = []
        for resource, answer in answers:
            if answer.code in _NOT_ALLOWED:
                unknown.append(resource)
            elif any(text(row, "name") == resource.plural for row in rows(answer.body, "resources")):
                return resource
        # Clusters that hide discovery tell by the list itself.
        return unknown[0] if unknown else None

    def _answer(self, resource: Resource) -> Answer:
        where = path(resource).rpartition("/")[0]
        answer = self._link.ask(Request("get", "GET", where, "apiresources", within=_WITHIN))
        if answer.is_good or answer.code == HTTPStatus.NOT_FOUND or answer.code in _NOT_ALLOWED:
            return answer
        raise BadAnswer(answer.message, answer.retry_after)
