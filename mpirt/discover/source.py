"""
Where pods come from.

Owns: the one question that is asked of whoever knows pods, and the answer of the API server to it. boardpods.py
has that of a switchboard.
"""

from __future__ import annotations

from mpirt.discover.pods import read_pod
from mpirt.errors import UsageError
from mpirt.kubeapi.request.answers import NotFound, Rejected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from mpirt.discover.pods import Pod
    from mpirt.discover.selection import Selection
    from mpirt.kubeapi.access.steps import Deadline
    from mpirt.kubeapi.request.answers import JsonObject
    from mpirt.kubeapi.request.api import Api

    class Pods(Protocol):
        """Who knows the pods of a namespace."""

        def select(self, selection: Selection, deadline: Deadline) -> list[Pod]:
            """All pods of the selection as they are now, or an error; never some of them."""

        def named(self, name: str, deadline: Deadline) -> Pod | None:
            """One pod; None if there is none by that name."""


# What the API server says to a selector that it can't read.
_BAD_REQUEST = 400


class ApiPods:
    """The pods as the API server has them: read anew at each question, from no cache of its own either."""

    __slots__ = ("_api", "_container", "_namespace")

    def __init__(self, api: Api, namespace: str, *, container: str = "") -> None:
        self._api = api
        self._namespace = namespace
        self._container = container

    def select(self, selection: Selection, deadline: Deadline) -> list[Pod]:
        """Ask once for each label selector; a pod that several of them find counts once."""
        found: dict[str, Pod] = {}
        for labels in selection.selectors:
            try:
                pods = self._api.list_pods(self._namespace, self._read, deadline, labels=labels)
            except Rejected as error:
                if error.failure.status == _BAD_REQUEST:
                    raise UsageError(f"{selection.asked}: {error.failure.message}") from error
                raise
            found.update((pod.name, pod) for pod in pods if selection.holds(pod))
        return list(found.values())

    def named(self, name: str, deadline: Deadline) -> Pod | None:
        """Read one pod."""
        try:
            return self._read(self._api.get_pod(self._namespace, name, deadline))
        except NotFound:
            return None

    def _read(self, body: JsonObject) -> Pod:
        return read_pod(body, container=self._container)
