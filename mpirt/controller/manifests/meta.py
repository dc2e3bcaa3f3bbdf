"""
The metadata that all objects of a job share.

Owns: name, namespace, labels and the owner reference, by which Kubernetes deletes them with the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import job_labels, object_name
from mpirt.controller.model.spec import JobSpec, Owner


def head(
    spec: JobSpec, kind: str, *, annotations: Mapping[str, str] | None = None, api_version: str = ""
) -> dict[str, Any]:
    """Return apiVersion, kind and metadata of the job's object of that kind."""
    metadata: dict[str, Any] = {
        "name": object_name(kind, spec.key.name),
        "namespace": spec.key.namespace,
        "labels": job_labels(spec.key.kind, spec.key.name),
        "ownerReferences": [owner_reference(spec.owner)],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    version = api_version or kinds.RESOURCES[kind].api_version
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def owner_reference(owner: Owner) -> dict[str, Any]:
    """Return the owner reference that makes the job the controller of an object."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.key.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
