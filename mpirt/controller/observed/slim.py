"""
Which parts of an object the caches keep.

Owns: the fields that nothing reads, which are by far the largest part of an object, and the sections of which the
cache keeps digests. These list a job's workers or hold whole files, so they may be as long as an object can be,
however small the job is; and they are only compared with what the job wants. Of the workers that a Role names, the
numbers are kept, too, as ranges.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mpirt import names
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import TEMPLATE_ANNOTATION, WORKERS_ANNOTATION, worker_name, worker_number
from mpirt.controller.model.reading import Body, digest, pruned, rows, table, text
from mpirt.controller.observed.pods import image_volumes

_UNREAD_METADATA = frozenset({"managedFields", "selfLink"})
_UNREAD_ANNOTATIONS = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
_READ_OF_EVENT = frozenset({"involvedObject", "message", "lastTimestamp", "eventTime"})
_READ_OF_NODE = ("name", "uid", "resourceVersion")
_READ_OF_NODE_SPEC = ("taints", "unschedulable")
_READ_OF_NODE_INFO = ("kubeletVersion", "containerRuntimeVersion", "operatingSystem", "architecture")
_READ_OF_POD_SPEC = frozenset({"nodeName", "readinessGates", "restartPolicy"})
_READ_POD_LABELS = (
    names.KUBEFLOW_JOB_LABEL,
    names.JOB_KIND_LABEL,
    names.KUBEFLOW_ROLE_LABEL,
    names.KUBEFLOW_INDEX_LABEL,
    names.REVISION_LABEL,
)


def slim(kind: str, body: Body) -> dict[str, Any]:
    """Return the object without the fields that nothing here reads, for the cache."""
    metadata = {name: value for name, value in table(body, "metadata").items() if name not in _UNREAD_METADATA}
    if "annotations" in metadata:
        kept = {name: value for name, value in metadata["annotations"].items() if name not in _UNREAD_ANNOTATIONS}
        metadata["annotations"] = kept
    if kind in (kinds.EVENT, kinds.EVICTION):
        return {"metadata": metadata, **{name: body[name] for name in _READ_OF_EVENT if name in body}}
    if kind == kinds.NODE:
        return _slim_node(body, metadata)
    slimmed = {**body, "metadata": metadata, **digested(kind, body)}
    if kind not in kinds.RESOURCES:
        # Its CRD may keep whatever users write.
        return {name: pruned(value) for name, value in slimmed.items()}
    if kind == kinds.POD:
        slimmed["spec"] = _slim_pod_spec(body["spec"])
        labels = table(metadata, "labels")
        metadata["labels"] = {name: labels[name] for name in _READ_POD_LABELS if name in labels}
    if kind in (kinds.STATEFUL_SET, kinds.JOB):
        # Its template is compared by digest and generation, never field by field.
        slimmed["spec"] = {name: value for name, value in body["spec"].items() if name != "template"}
        if digests := _digests(body):
            slimmed["spec"]["template"] = {"metadata": {"annotations": digests}}
    return slimmed


def _slim_node(body: Body, metadata: Body) -> dict[str, Any]:
    spec, info = table(body, "spec"), table(body, "status", "nodeInfo")
    return {
        "metadata": {name: metadata[name] for name in _READ_OF_NODE if name in metadata},
        "spec": {name: spec[name] for name in _READ_OF_NODE_SPEC if name in spec},
        "status": {"nodeInfo": {name: info[name] for name in _READ_OF_NODE_INFO if name in info}},
    }


def _slim_pod_spec(spec: Body) -> dict[str, Any]:
    kept = {name: value for name, value in spec.items() if name in _READ_OF_POD_SPEC}
    sidecars = [
        {name: row.get(name) for name in ("name", "restartPolicy")}
        for row in rows(spec, "initContainers")
        if row.get("restartPolicy")
    ]
    # Since Kubernetes 1.35 a container may have one of its own.
    policies = [text(row, "restartPolicy") for row in rows(spec, "containers")]
    mounted = [{"image": {"reference": reference}} for reference in image_volumes(spec)]
    return {
        **kept,
        **({"containers": [{"restartPolicy": one} for one in policies if one]} if any(policies) else {}),
        **({"initContainers": sidecars} if sidecars else {}),
        **({"volumes": mounted} if mounted else {}),
    }


def _digests(body: Body) -> dict[str, str]:
    """Return the digests in the annotations of its pod template."""
    annotations = table(body, "spec", "template", "metadata", "annotations")
    return {name: annotations[name] for name in (TEMPLATE_ANNOTATION, WORKERS_ANNOTATION) if name in annotations}


# Where the cache has the workers that a Role names.
_WORKERS = "workers"


def digested(kind: str, body: Body) -> dict[str, Any]:
    """Return these sections of an object in the form in which the cache keeps them; none for most kinds."""
    if kind == kinds.ROLE and "rules" in body:
        return {"rules": digest(body["rules"]), _WORKERS: _ranges(body)}
    if kind != kinds.CONFIG_MAP:
        return {}
    # By name: whether a certain file is there shows whose the ConfigMap is.
    made = (("data", digest), ("binaryData", _of_keeper))
    return {
        section: {name: of(value) for name, value in table(body, section).items()}
        for section, of in made
        if section in body
    }


def written_digest(manifest: Body) -> str:
    """Return the digest of an object that is to be written; of files that all jobs have, it is computed once."""
    return digest({**manifest, **digested(manifest["kind"], manifest)})


def named_workers(job: str, role: Body) -> set[str]:
    """Return the names of the job's workers that its Role names, as the cache has it."""
    ranges = (range(first, last + 1) for first, last in role.get(_WORKERS, ()))
    return {worker_name(job, number) for numbers in ranges for number in numbers}


def _ranges(role: Body) -> list[tuple[int, int]]:
    named = {str(name) for rule in rows(role, "rules") for name in rule.get("resourceNames") or ()}
    found: list[tuple[int, int]] = []
    for number in sorted({worker_number(name) for name in named} - {-1}):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


@lru_cache(maxsize=8)
def _of_keeper(file: str) -> str:
    """Return the digest of a file that all jobs have, and that is long."""
    return digest(file)
