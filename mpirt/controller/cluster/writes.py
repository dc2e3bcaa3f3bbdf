"""
Carries out actions.

Owns: the request for each kind of action. Decides nothing: the caller reacts to the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
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
        try:
            answer = self._link.ask(self._get(self._resource(kind), namespace, name))
        except Away:
            return None
        return answer.body if answer.is_good else None

    def _request(self, action: Action, key: JobKey) -> Request:
        resource, request = self._resource(action.kind), partial(Request, within=self._within)
        where, plural = path(resource, key.namespace, action.name), resource.plural
        patch = partial(request, "patch", "PATCH", query=_MANAGER, content=JSON_PATCH)
        match action:
            case Create():
                query = _MANAGER | ({"dryRun": "All"} if action.dry_run else {})
                where = path(resource, key.namespace)
                return request("create", "POST", where, plural, query=query, body=dict(action.manifest))
            case Delete():
                return request("delete", "DELETE", where, plural, body=_delete_options(action))
            case Patch():
                return patch(where, plural, body=[dict(each) for each in action.operations])
            case Find():
                return self._get(resource, key.namespace, action.name)
            case WriteStatus():
                return patch(f"{where}/status", f"{plural}/status", body=_status_patch(action))

    def _resource(self, kind: str) -> Resource:
        return self._served[kind]() if kind in self._served else self._resources[kind]

    def _get(self, resource: Resource, namespace: str, name: str) -> Request:
        return Request("get", "GET", path(resource, namespace, name), resource.plural, within=self._within)


def _delete_options(action: Delete) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {
            "uid": action.uid,
            **({"resourceVersion": action.version} if action.version else {}),
        },
        "propagationPolicy": _propagation(action),
        **({} if action.grace is None else {"gracePeriodSeconds": action.grace}),
    }


def _propagation(action: Delete) -> str:
    if action.orphans:
        return "Orphan"
    return "Foreground" if action.foreground else "Background"


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
