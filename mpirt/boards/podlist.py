"""
Pods as a switchboard passes them on: what mpirt-discover reads of a pod, in the API's own shape. No I/O.

Owns: which fields these are, and the document that PODS frames carry. Whoever reads another field there adds it
here, and counts FORM in protocol.py up: a switchboard may be older than the program that asks it.
"""

from __future__ import annotations

import json

from mpirt import names, podobjects
from mpirt.boards.protocol import FORM
from mpirt.objects import rows, table, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mpirt.objects import Body

_METADATA = ("name", "generateName", "labels", "creationTimestamp", "deletionTimestamp")
_ANNOTATIONS = (names.DEFAULT_CONTAINER_ANNOTATION, names.DRAINING_ANNOTATION, names.SLOTS_ANNOTATION)
_OWNER = ("kind", "name", "uid", "controller")
_CONDITION = ("type", "status", "reason")
_CONDITIONS = ("Ready", "ContainersReady", "PodScheduled", "DisruptionTarget")
_STATUSES = ("initContainerStatuses", "containerStatuses")


def trimmed(body: Body) -> dict[str, Any]:
    """The pod without all that nobody reads."""
    metadata, spec, status = table(body, "metadata"), table(body, "spec"), table(body, "status")
    annotations = _some(table(metadata, "annotations"), _ANNOTATIONS)
    owner = podobjects.controller(metadata)
    return {
        "metadata": {
            **_some(metadata, _METADATA),
            **({"annotations": annotations} if annotations else {}),
            **({"ownerReferences": [_some(owner, _OWNER)]} if owner else {}),
        },
        "spec": {
            "containers": [_container(row) for row in rows(spec, "containers")],
            **({"readinessGates": [{}]} if rows(spec, "readinessGates") else {}),
        },
        "status": _status(status),
    }


def pod_text(body: Body) -> str:
    """The trimmed pod as JSON."""
    return json.dumps(trimmed(body), separators=(",", ":"))


def document(pods: Iterable[str]) -> bytes:
    """The answer: these pods, each as pod_text() has it."""
    return f'{{"form":{FORM},"pods":[{",".join(pods)}]}}'.encode()


def refusal(why: str) -> bytes:
    """The answer: ask the API server."""
    return json.dumps({"form": FORM, "pods": None, "why": why}).encode()


def _container(row: Body) -> dict[str, Any]:
    limits = table(row, "resources", "limits")
    gpus = {name: limit for name, limit in limits.items() if name.endswith(podobjects.GPU_SUFFIX)}
    return {**_some(row, ("name",)), **({"resources": {"limits": gpus}} if gpus else {})}


def _status(status: Body) -> dict[str, Any]:
    conditions = [_some(row, _CONDITION) for row in rows(status, "conditions") if row.get("type") in _CONDITIONS]
    kept = {**_some(status, ("phase",)), "conditions": conditions}
    if podobjects.holds(podobjects.conditions(status), "Ready"):
        return kept
    # Why it isn't Ready.
    states = {name: [_state(row) for row in rows(status, name)] for name in _STATUSES if rows(status, name)}
    return {**kept, **_some(status, ("reason",)), **states}


def _state(row: Body) -> dict[str, Any]:
    states = {name: text(table(row, "state", name), "reason") for name in ("waiting", "terminated")}
    reasons = {name: {"reason": reason} for name, reason in states.items() if reason}
    return {**_some(row, ("ready",)), **({"state": reasons} if reasons else {})}


def _some(fields: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    return {name: fields[name] for name in wanted if name in fields}
