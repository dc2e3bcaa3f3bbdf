"""
A worker that is a pod of its own, without a StatefulSet.

Owns: what such a pod has beside the workers' template: its name, by which it can also be reached, its number, and
the job as its owner. It is never restarted in place: whoever replaces it gets another number.
"""

from __future__ import annotations

from typing import Any

from mpirt import names
from mpirt.controller.manifests.meta import owner_reference
from mpirt.controller.manifests.workers import worker_template
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import object_name, worker_number
from mpirt.controller.model.reading import digest
from mpirt.controller.model.roster import Change, Roster, Source
from mpirt.controller.model.spec import JobSpec, Settings


def worker_pod(spec: JobSpec, settings: Settings, name: str, roster: Roster) -> dict[str, Any]:
    """Return the pod of the worker with that name. One that is about to join is no host yet."""
    template = worker_template(spec, settings)
    metadata, change = template["metadata"], roster.change
    joins = change is not None and name in change.joining
    return {
        "apiVersion": kinds.RESOURCES[kinds.POD].api_version,
        "kind": kinds.POD,
        "metadata": {
            "name": name,
            "namespace": spec.key.namespace,
            "labels": {
                **metadata["labels"],
                names.TRAINING_INDEX_LABEL: str(worker_number(name)),
                **(_added_by(change) if joins and change is not None else {}),
            },
            "annotations": {**metadata["annotations"], **(_held(change) if joins and change is not None else {})},
            "ownerReferences": [owner_reference(spec.owner)],
        },
        "spec": {
            **template["spec"],
            "restartPolicy": "Never",
            "hostname": name,
            "subdomain": object_name(kinds.SERVICE, spec.key.name),
        },
    }


def pod_shape(spec: JobSpec, name: str, roster: Roster) -> str:
    """
    Return a digest that is the same for pods of workers that differ only by their names.

    What the API server rejects because of a quota or a policy, it rejects for all of them.
    """
    change = roster.change
    added_by = change.uid if change is not None and name in change.joining else ""
    return digest(kinds.POD, spec.worker_digest, added_by)


def _added_by(change: Change) -> dict[str, str]:
    return {names.SCALE_OUT_LABEL: change.name} if change.source is Source.SCALE_OUT else {}


def _held(change: Change) -> dict[str, str]:
    return {names.DRAINING_ANNOTATION: str(change.source)}
