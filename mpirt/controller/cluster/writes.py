"""
Carries out actions.

Owns: the request for each kind of action. Decides nothing: the caller reacts to the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mpirt import names
from mpirt.controller.cluster.link import JSON_PATCH, Away, Link, Request, path
from mpirt.controller.model.actions import (
    Action,
    Create,
    Delete,
    Find,
    Operation,
    Outcome,
    Patch,
    Unavailable,
    WriteStatus,
    is_object,
    outcome,
)
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.reading import Body
from mpirt.controller.model.spec import JobKey

_MANAGER = {"fieldManager": names.CONTROLLER}


class Writer:
    """Writes to one API server. Every method may be called from any thread."""

    def __init__(
        self,
        link: Link,
        resources: Mapping[str, Resource],
        served: Mapping[str, Callable[[], Resource]],
        *,
        within: float,
    ) -> None:
        """
        `served`: for kinds of CRDs, a function that returns the resource in the version served now.

        `within`: the seconds that a request may take.
        """
        self._link = link
        self._within = within
        self._resources = resources
        self._served = served

    def carry_out(self, action: Action, key: JobKey) -> Outcome:
        """Carry out the action in the job's namespace, and return the outcome."""
        try:
            answer = self._link.ask(self._request(action, key))
        except Away as error:
            return Unavailable(str(error))
        return outcome(action, answer.code, answer.body, retry_after=answer.retry_after)

    def read(self, kind: str, namespace: str, name: str) -> Body | None:
        """Read an object from the API server; None if it can't be read or does not exist."""
        resource = self._resource(kind)
        try:
            answer = self._link.ask(self._get(resource, path(resource, namespace, name)))
        except Away:
            return None
        return answer.body if answer.is_good else None

    def _request(self, action: Action, key: JobKey) -> Request:
        match action:
            case Create():
                return self._create(action, key)
            case Delete():
                return self._delete(action, key)
            case Patch():
                resource = self._resource(action.kind)
                where = path(resource, key.namespace, action.name)
                return self._patch(where, resource.plural, action.operations)
            case Find():
                resource = self._resource(action.kind)
                return self._get(resource, path(resource, key.namespace, action.name))
            case WriteStatus():
                resource = self._resource(action.kind)
                where = path(resource, key.namespace, action.name, below="status")
                return self._patch(where, f"{resource.plural}/status", _status_patch(action))

    def _resource(self, kind: str) -> Resource:
        return self._served[kind]() if kind in self._served else self._resources[kind]

    def _get(self, resource: Resource, where: str) -> Request:
        return Request("get", "GET", where, resource.plural, within=self._within)

    def _create(self, action: Create, key: JobKey) -> Request:
        resource = self._resource(action.kind)
        query = _MANAGER | ({"dryRun": "All"} if action.dry_run else {})
        where, body = path(resource, key.namespace), dict(action.manifest)
        return Request("create", "POST", where, resource.plural, query=query, body=body, within=self._within)

    def _patch(self, where: str, plural: str, operations: Iterable[Operation]) -> Request:
        return Request(
            "patch",
            "PATCH",
            where,
            plural,
            query=_MANAGER,
            body=[dict(each) for each in operations],
            content=JSON_PATCH,
            within=self._within,
        )

    def _delete(self, action: Delete, key: JobKey) -> Request:
        resource = self._resource(action.kind)
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": action.uid} | _version(action),
            "propagationPolicy": _propagation(action),
        }
        if action.grace is not None:
            options["gracePeriodSeconds"] = action.grace
        where = path(resource, key.namespace, action.name)
        return Request("delete", "DELETE", where, resource.plural, body=options, within=self._within)


def _propagation(action: Delete) -> str:
    if action.orphans:
        return "Orphan"
    return "Foreground" if action.foreground else "Background"


def _version(action: Delete) -> dict[str, str]:
    return {"resourceVersion": action.version} if action.version else {}


def _status_patch(action: WriteStatus) -> list[Operation]:
    """
    Return the patch of a status.

    The resourceVersion in it is a precondition: if the object has another one by now, the answer is 409.
    """
    return [
        is_object(action.uid),
        {"op": "add", "path": "/metadata/resourceVersion", "value": action.version},
        {"op": "add", "path": "/status", "value": dict(action.status)},
    ]
