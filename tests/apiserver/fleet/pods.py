"""
The pods of the fleet as JSON that is written once, and what has happened to them.

Owns: objects, versions and selections. No I/O.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.apiserver.pods import Pod, pod
from tests.apiserver.world import Selection

NAMESPACE = "ml"
JOB = "fleet"
LABELS = {"training.kubeflow.org/job-name": JOB, "training.kubeflow.org/job-role": "worker"}
PODS_OF_A_NODE = 16
_FIRST_VERSION = 100


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a watch."""

    version: int
    pod: Pod
    line: bytes


class Pods:
    """Workers of one job, `fleet-worker-0` and so on."""

    def __init__(self, count: int) -> None:
        self.version = _FIRST_VERSION
        self._pods: dict[str, Pod] = {}
        self._written: dict[str, bytes] = {}
        self._history: list[Change] = []
        for number in range(count):
            name = f"{JOB}-worker-{number}"
            labels = {**LABELS, "training.kubeflow.org/replica-index": str(number)}
            self._store(pod(name, labels=labels, node=f"node-{number // PODS_OF_A_NODE}"))

    def __contains__(self, name: str) -> bool:
        return name in self._pods

    def get(self, name: str) -> bytes | None:
        """A pod."""
        return self._written.get(name)

    def page(self, selection: Selection, limit: int, token: str) -> bytes:
        """A list, or so many of it; `token` says where the last page has ended."""
        found = self._selected(selection)
        names = [name for name in found if not token or name > token] if limit else found
        metadata = {"resourceVersion": str(self.version)}
        if limit and len(names) > limit:
            names = names[:limit]
            metadata["continue"] = names[-1]
        items = b",".join(self._written[name] for name in names)
        head = f'{{"kind":"PodList","apiVersion":"v1","metadata":{json.dumps(metadata)},"items":['
        return head.encode() + items + b"]}"

    def since(self, version: int, selection: Selection) -> Iterator[bytes]:
        """What a watch from there begins with: what has happened since, or with 0 all that is there."""
        if version:
            yield from (
                each.line for each in self._history if each.version > version and selection.matches(each.pod)
            )
        else:
            yield from (_line("ADDED", self._written[name]) for name in self._selected(selection))

    def delete(self, name: str) -> Change:
        """Remove a pod. Raises KeyError."""
        self.version += 1
        gone = self._pods.pop(name)
        del self._written[name]
        gone["metadata"]["resourceVersion"] = str(self.version)
        return self._record("DELETED", gone, json.dumps(gone).encode())

    def modify(self, name: str) -> Change:
        """Have something happen to a pod that means nothing. Raises KeyError."""
        found = self._pods[name]
        found["metadata"]["annotations"]["fleet/modified"] = str(self.version)
        self._store(found)
        return self._record("MODIFIED", found, self._written[name])

    def bookmark(self) -> bytes:
        """The line that tells how far a watch has come."""
        metadata = {"resourceVersion": str(self.version)}
        return _line("BOOKMARK", json.dumps({"kind": "Pod", "apiVersion": "v1", "metadata": metadata}).encode())

    def _selected(self, selection: Selection) -> list[str]:
        """Names in order. One pod is not looked for among thousands."""
        named = dict(selection.fields).get("metadata.name", "")
        candidates: Mapping[str, Pod] = self._pods
        if named:
            candidates = {named: self._pods[named]} if named in self._pods else {}
        return sorted(name for name, each in candidates.items() if selection.matches(each))

    def _store(self, made: Pod) -> None:
        self.version += 1
        made["metadata"]["resourceVersion"] = str(self.version)
        name = made["metadata"]["name"]
        self._pods[name], self._written[name] = made, json.dumps(made).encode()

    def _record(self, kind: str, changed: Pod, written: bytes) -> Change:
        self._history.append(Change(self.version, changed, _line(kind, written)))
        return self._history[-1]


def _line(kind: str, written: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), written)
