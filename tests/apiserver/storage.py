"""
Objects of any kind, as a loopback API server keeps them: versions, history, JSON patches.

Owns: storage and nothing of HTTP. Every method may be called from any thread. It knows no schema, no defaults and
no controllers: what a StatefulSet or a Job would do, a test does.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where an object is, or with empty words where several are."""

    plural: str
    namespace: str = ""
    name: str = ""

    def holds(self, other: Place) -> bool:
        return self.plural == other.plural and self.namespace in ("", other.namespace)


class Trouble(Exception):
    """A no, with its code and reason."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class Storage:
    """All objects."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.version = 100
        self._objects: dict[Place, Body] = {}
        self._history: list[tuple[int, str, Place, Body]] = []
        self._oldest = 0

    def create(self, place: Place, body: Body, *, dry_run: bool = False) -> Body:
        with self.changed:
            if place in self._objects:
                raise Trouble(409, "AlreadyExists", f'{place.plural} "{place.name}" already exists')
            metadata = {**body.get("metadata", {}), "namespace": place.namespace, "generation": 1}
            metadata["uid"] = f"uid-{place.plural}-{place.name}-{self.version}"
            metadata["creationTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            made = {**copy.deepcopy(body), "metadata": metadata}
            return made if dry_run else self._store("ADDED", place, made)

    def replace(self, place: Place, body: Body) -> Body:
        with self.changed:
            there = self._get(place)
            if body["metadata"].get("resourceVersion") != there["metadata"]["resourceVersion"]:
                raise Trouble(409, "Conflict", "the object has been modified")
            return self._store("MODIFIED", place, copy.deepcopy(body))

    def change(self, place: Place, change: Callable[[Body], None]) -> Body:
        """Let a test, or a patch, change the object."""
        with self.changed:
            body = copy.deepcopy(self._get(place))
            before = copy.deepcopy(body.get("spec"))
            change(body)
            if body["metadata"]["resourceVersion"] != self._get(place)["metadata"]["resourceVersion"]:
                raise Trouble(409, "Conflict", "the object has been modified")
            if body.get("spec") != before:
                body["metadata"]["generation"] += 1
            return self._store("MODIFIED", place, body)

    def delete(self, place: Place, uid: str = "") -> None:
        with self.changed:
            there = self._get(place)
            if uid not in ("", there["metadata"]["uid"]):
                raise Trouble(409, "Conflict", "the UID in the precondition does not match")
            self._store("DELETED", place, there)
            del self._objects[place]

    def get(self, place: Place) -> Body:
        with self.changed:
            return copy.deepcopy(self._get(place))

    def find(self, place: Place) -> Body | None:
        """The object, if there is one."""
        with self.changed:
            return copy.deepcopy(self._objects.get(place))

    def select(self, place: Place) -> tuple[int, list[Body]]:
        with self.changed:
            return self.version, [body for at, body in self._objects.items() if place.holds(at)]

    def names(self, plural: str) -> list[str]:
        """Namespace and name of all objects of a kind, in order."""
        with self.changed:
            return sorted(f"{at.namespace}/{at.name}" for at in self._objects if at.plural == plural)

    def after(self, version: int, place: Place, within: float) -> list[tuple[int, str, Body]] | None:
        """What happened to such objects after a version; None if that is no longer known."""
        until = time.monotonic() + within
        with self.changed:
            while True:
                if version < self._oldest:
                    return None
                found = [
                    (number, kind, body)
                    for number, kind, at, body in self._history
                    if number > version and place.holds(at)
                ]
                left = until - time.monotonic()
                if found or left <= 0:
                    return found
                self.changed.wait(left)

    def expire(self) -> None:
        """Forget the past: every watch has to begin with a list again."""
        with self.changed:
            self.version += 1
            self._oldest = self.version
            self._history.clear()
            self.changed.notify_all()

    def _get(self, place: Place) -> Body:
        if place not in self._objects:
            raise Trouble(404, "NotFound", f'{place.plural} "{place.name}" not found')
        return self._objects[place]

    def _store(self, kind: str, place: Place, body: Body) -> Body:
        self.version += 1
        stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        self._objects[place] = stored
        self._history.append((self.version, kind, place, stored))
        self.changed.notify_all()
        return stored


def apply_patch(body: Body, operations: Sequence[Body]) -> None:
    """A JSON patch, as far as the controller uses them."""
    for operation in operations:
        *above, last = [word.replace("~1", "/").replace("~0", "~") for word in operation["path"].split("/")[1:]]
        holder: Any = body
        for word in above:
            holder = holder[int(word)] if isinstance(holder, list) else holder[word]
        match operation["op"]:
            case "test" if holder.get(last) != operation["value"]:
                raise Trouble(422, "Invalid", "the server rejected our request due to an error in our request")
            case "add" | "replace":
                holder[last] = operation["value"]
            case "remove":
                del holder[last]
