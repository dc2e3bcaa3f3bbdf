"""
What the loopback API server knows: pods, their versions, and who waits for the next change.

Owns: storage and its history, and nothing of HTTP. Every method may be called from any thread.
"""

from __future__ import annotations

import copy
import threading
import time
from dataclasses import dataclass

from tests.apiserver.pods import Pod


@dataclass(frozen=True)
class Change:
    """One event of a watch."""

    version: int
    type: str
    pod: Pod
    before: Pod | None = None
    """As it was before a change."""


@dataclass(frozen=True)
class Selection:
    """Which pods a request is about."""

    namespace: str
    name: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    """A field's path, with a ! at its end where it must not have the value."""

    def matches(self, pod: Pod) -> bool:
        metadata = pod["metadata"]
        return (
            metadata["namespace"] == self.namespace
            and self.name in ("", metadata["name"])
            and all(metadata["labels"].get(name) == value for name, value in self.labels)
            and all(self._has(pod, path, value) for path, value in self.fields)
        )

    @staticmethod
    def _has(pod: Pod, path: str, value: str) -> bool:
        above, field = path.removesuffix("!").split(".")
        return (pod[above].get(field, "") == value) is not path.endswith("!")


class World:
    """All pods, by namespace and name."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pods: dict[tuple[str, str], Pod] = {}
        self._history: list[Change] = []
        self._snapshots: dict[str, list[Pod]] = {}
        self._oldest = 100
        self._stopped = False
        self._told = 0
        self.version = 100

    def put(self, *pods: Pod) -> None:
        """Create the pods, or change them where they exist."""
        with self._changed:
            for pod in pods:
                key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
                self._record("MODIFIED" if key in self._pods else "ADDED", pod, self._pods.get(key))
                self._pods[key] = self._history[-1].pod
            self._changed.notify_all()

    def delete(self, name: str, *, namespace: str = "ml") -> None:
        """Remove the pod."""
        with self._changed:
            self._record("DELETED", self._pods.pop((namespace, name)))
            self._changed.notify_all()

    def bookmark(self) -> None:
        """Send a bookmark on every watch."""
        with self._changed:
            self._record(
                "BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "", "labels": {}}}
            )
            self._changed.notify_all()

    def compact(self) -> None:
        """Forget the past: older resource versions and continue tokens answer 410 from now on."""
        with self._changed:
            self.version += 1
            self._oldest = self.version
            self._history.clear()
            self._snapshots.clear()
            self._changed.notify_all()

    def get(self, namespace: str, name: str) -> Pod | None:
        """The pod as it is now."""
        with self._changed:
            return self._pods.get((namespace, name))

    def select(self, selection: Selection) -> tuple[str, list[Pod]]:
        """The version of the list, and the pods."""
        with self._changed:
            return str(self.version), [pod for pod in self._pods.values() if selection.matches(pod)]

    def keep(self, token: str, rest: list[Pod]) -> None:
        """Remember the rest of a list until a request has the token."""
        with self._changed:
            self._snapshots[token] = rest

    def resume(self, token: str) -> list[Pod] | None:
        """The rest of a list; None once it has expired."""
        with self._changed:
            return self._snapshots.get(token)

    def is_too_old(self, version: int) -> bool:
        """Whether a watch can no longer start from there."""
        with self._changed:
            return version < self._oldest

    def changes(self, selection: Selection, after: int, until: float) -> list[Change] | None:
        """What happened after a version, as soon as something has; None when the time, or the server, is over."""
        with self._changed:
            if after > self._told:
                self._told = after
                self._changed.notify_all()
            while not self._stopped:
                recent = [change for change in self._history if change.version > after]
                found = [seen for change in recent if (seen := _as_seen(selection, change)) is not None]
                if found or after < self._oldest:
                    return found
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return None
            return None

    def wait_until_told(self, patience: float) -> None:
        """Wait until a watch has sent the last change."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._told >= self.version, patience), "no watch has sent it"

    def stop(self) -> None:
        """End every wait."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _record(self, kind: str, pod: Pod, before: Pod | None = None) -> None:
        self.version += 1
        stored = copy.deepcopy(pod)
        stored["metadata"]["resourceVersion"] = str(self.version)
        self._history.append(Change(self.version, kind, stored, before))


def _as_seen(selection: Selection, change: Change) -> Change | None:
    """The change as a watch on the selection has it: a pod that leaves the selection is deleted there."""
    if change.type == "BOOKMARK":
        return change
    matches, before = selection.matches(change.pod), change.before
    if before is None or change.type != "MODIFIED":
        return change if matches else None
    if selection.matches(before):
        # The API server gives it as it was, with the version of the change.
        left = {**before, "metadata": {**before["metadata"], "resourceVersion": str(change.version)}}
        return change if matches else Change(change.version, "DELETED", left)
    return Change(change.version, "ADDED", change.pod) if matches else None
