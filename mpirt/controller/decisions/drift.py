"""
The difference between the desired and the actual state of an object, and of the workers' pods.

Owns: which sections of each kind are ours, how they are compared, and the patch that corrects them; when all
workers of an old template are deleted at once, and the labels that show workers' ranks to other programs. No I/O.

Sections that the API server stores unchanged are compared as a whole, so that additions are drift, too; of long
ones the cache has digests. It rewrites pod templates: a template is compared by the digest of what the user wrote,
and by the generation, which every edit raises.

A StatefulSet replaces one worker after the other, each when the previous one is Ready, which keeps an elastic job
running. Any other job can't run until all workers are new. The StatefulSet keeps the strategy RollingUpdate, which
means the same in every version of Kubernetes (maxUnavailable needs a feature gate in most), and so it updates its
pods even if no controller runs; the controller only deletes them sooner. Its pods share the labels of its
template, so each can be labelled with its rank only once it exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpirt import names
from mpirt.controller.manifests.workers import worker_indices
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import (
    Action,
    Delete,
    Manifest,
    Operation,
    Patch,
    WriteStatus,
    is_object,
    pointer,
)
from mpirt.controller.model.objectnames import GENERATION_ANNOTATION, TEMPLATE_ANNOTATION
from mpirt.controller.model.reading import digest, text
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import Live, Observed, digest_of, is_behind, is_of_revision
from mpirt.controller.observed.slim import digested, written_digest

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Sections:
    """The sections of a kind that are ours."""

    kept: tuple[_Path, ...] = ()
    """Sections that must equal the desired state; one that is not desired is removed."""
    fixed: tuple[_Path, ...] = ()
    """Immutable sections: if one differs, the object is deleted and recreated."""
    given: tuple[_Path, ...] = ()
    """Sections that must equal the desired state if one is desired; what others fill in stays."""


_SECTIONS: Mapping[str, _Sections] = {
    kinds.CONFIG_MAP: _Sections(kept=(("data",), ("binaryData",))),
    kinds.SERVICE_ACCOUNT: _Sections(),
    kinds.ROLE: _Sections(kept=(("rules",),)),
    kinds.ROLE_BINDING: _Sections(kept=(("subjects",),), fixed=(("roleRef",),)),
    kinds.SERVICE: _Sections(
        kept=(
            *(("spec", "selector"), ("spec", "publishNotReadyAddresses"), ("spec", "type")),
            # Not desired: removed if present.
            *(("spec", "ports"), ("spec", "externalIPs"), ("spec", "externalName")),
        ),
        fixed=(("spec", "clusterIP"),),
    ),
    kinds.DISRUPTION_BUDGET: _Sections(
        # A server before Kubernetes 1.27 does not know unhealthyPodEvictionPolicy.
        kept=(("spec", "minAvailable"), ("spec", "maxUnavailable"), ("spec", "selector")),
    ),
    kinds.POD_GROUP: _Sections(
        kept=(("spec", "minMember"),),
        # Volcano fills in a queue.
        given=tuple(
            ("spec", name) for name in ("minResources", "scheduleTimeoutSeconds", "queue", "priorityClassName")
        ),
    ),
    kinds.STATEFUL_SET: _Sections(
        # Ordinals change the pods' names. None are desired.
        kept=(("spec", "replicas"), ("spec", "ordinals")),
        fixed=(("spec", "serviceName"), ("spec", "podManagementPolicy"), ("spec", "selector")),
    ),
    kinds.JOB: _Sections(
        kept=(("spec", "parallelism"), ("spec", "backoffLimit"), ("spec", "ttlSecondsAfterFinished")),
    ),
}


def correction(wanted: Manifest, live: Live) -> Action | None:
    """Return the action that corrects the object's drift; None if there is no drift."""
    sections = _SECTIONS[live.kind]
    if any(_at(wanted, path) != _at(live.body, path) for path in sections.fixed) or live.body.get("immutable"):
        return Delete(
            live.kind, live.name, live.uid, f"an immutable field of {live.kind} {live.name} differs; recreating"
        )
    operations = [
        *_section_changes(wanted, live, sections),
        *(_template_changes(wanted, live) if live.kind == kinds.STATEFUL_SET else ()),
        *(_deadline_changes(wanted, live) if live.kind == kinds.JOB else ()),
    ]
    [owner] = wanted["metadata"]["ownerReferences"]
    operations = [
        *operations,
        *_metadata_changes(_with_generation(wanted, live, operations), live),
        *_owner_changes(owner, live),
    ]
    return _patch(live, operations, written_digest(wanted)) if operations else None


def owner_correction(owner: Mapping[str, Any], live: Live) -> Patch | None:
    """Return the patch of the object's owner reference alone; None if there is no drift in it."""
    operations = list(_owner_changes(owner, live))
    return _patch(live, operations, digest(owner)) if operations else None


def _patch(live: Live, operations: Sequence[Operation], wanted: str) -> Patch:
    changed = ", ".join(str(operation["path"]) for operation in operations if operation["op"] != "test")
    why = f"{live.kind} {live.name} has drifted: {changed}"
    return Patch(live.kind, live.name, (is_object(live.uid), *operations), why, wanted)


def _section_changes(wanted: Manifest, live: Live, sections: _Sections) -> Iterator[Operation]:
    given = (path for path in sections.given if _at(wanted, path) is not None)
    compared = {**wanted, **digested(live.kind, wanted)}
    for path in (*sections.kept, *given):
        if _at(compared, path) == _at(live.body, path):
            continue
        if (value := _at(wanted, path)) is None:
            yield {"op": "remove", "path": pointer(*path)}
        else:
            yield {"op": "add", "path": pointer(*path), "value": value}


def _template_changes(wanted: Manifest, live: Live) -> Iterator[Operation]:
    # The annotation says generation + 1 if our last write did not raise the generation, because it changed nothing
    # in the spec. It is missing if another client stripped it: the template is then unchanged.
    untouched = ("", str(live.generation), str(live.generation + 1))
    is_untouched = live.annotations.get(GENERATION_ANNOTATION, "") in untouched
    if not is_untouched or digest_of(live, TEMPLATE_ANNOTATION) != _annotations(wanted)[TEMPLATE_ANNOTATION]:
        for name in ("template", "updateStrategy"):
            yield {"op": "add", "path": f"/spec/{name}", "value": wanted["spec"][name]}


def _deadline_changes(wanted: Manifest, live: Live) -> Iterator[Operation]:
    path = ("spec", "activeDeadlineSeconds")
    value = _at(wanted, path)
    if value != _at(live.body, path):
        change = {"op": "remove"} if value is None else {"op": "add", "value": value}
        yield {**change, "path": pointer(*path)}


def _with_generation(wanted: Manifest, live: Live, operations: list[Operation]) -> Manifest:
    """Return the desired manifest, annotated with the generation that the object has after the operations."""
    if live.kind != kinds.STATEFUL_SET:
        return wanted
    expected = live.generation + 1 if operations else live.generation
    annotations = {**_annotations(wanted), GENERATION_ANNOTATION: str(expected)}
    return {**wanted, "metadata": {**wanted["metadata"], "annotations": annotations}}


def _metadata_changes(wanted: Manifest, live: Live) -> Iterator[Operation]:
    for field, present, asked in (
        ("labels", live.labels, wanted["metadata"]["labels"]),
        ("annotations", live.annotations, _annotations(wanted)),
    ):
        missing = {name: text for name, text in asked.items() if present.get(name) != text}
        if missing and not present:
            yield {"op": "add", "path": f"/metadata/{field}", "value": missing}
        elif missing:
            for name, text in missing.items():
                yield {"op": "add", "path": pointer("metadata", field, name), "value": text}


def _owner_changes(owner: Mapping[str, Any], live: Live) -> Iterator[Operation]:
    """
    Yield the correction of the job's API version in the owner references.

    When a CRD is replaced, the version that they name may no longer be served. Kubernetes' garbage collector can't
    find the owner then: it deletes the object early, or never.
    """
    for index, row in enumerate(live.body["metadata"].get("ownerReferences", ())):
        if row.get("uid") == owner["uid"] and row.get("apiVersion") != owner["apiVersion"]:
            at = f"/metadata/ownerReferences/{index}"
            yield {"op": "test", "path": f"{at}/uid", "value": owner["uid"]}
            yield {"op": "replace", "path": f"{at}/apiVersion", "value": owner["apiVersion"]}


def _annotations(wanted: Manifest) -> Mapping[str, str]:
    found: Mapping[str, str] = wanted["metadata"].get("annotations", {})
    return found


def _at(body: Mapping[str, Any], path: _Path) -> Any:
    found: Any = body
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


# One digest for all of these patches: if one pod may not be labelled, none may.
_QUESTION = digest(names.KUBEFLOW_INDEX_LABEL)


def replaced_workers(spec: JobSpec, observed: Observed, changes: Iterable[Action]) -> list[Action]:
    """
    Return the deletions of all workers that the StatefulSet is about to replace.

    Empty while `changes` has an action on the StatefulSet: a manual edit creates a new revision, too, and is
    undone before it costs a worker.
    """
    workers = observed.live(kinds.STATEFUL_SET)
    if spec.workers.elastic is not None or workers is None or is_behind(workers) or observed.end is not None:
        return []
    knows_its_revision = bool(text(workers.status, "updateRevision"))
    if not knows_its_revision or any(_concerns(change, kinds.STATEFUL_SET) for change in changes):
        return []
    return [
        Delete(kinds.POD, pod.name, pod.uid, "the workers' template was changed")
        for pod in observed.workers
        if pod.deleted is None and not is_of_revision(workers, pod)
    ]


def _concerns(change: Action, kind: str) -> bool:
    return not isinstance(change, WriteStatus) and change.kind == kind


def label_ranks(spec: JobSpec, observed: Observed) -> list[Patch]:
    """Return the patches that set missing rank labels; empty while a rejection of one is remembered."""
    if any(rejection.digest == _QUESTION for rejection in observed.rejections):
        return []
    wanted = worker_indices(spec)
    path = pointer("metadata", "labels", names.KUBEFLOW_INDEX_LABEL)
    return [
        Patch(
            kinds.POD,
            pod.name,
            (is_object(pod.uid), {"op": "add", "path": path, "value": wanted[pod.name]}),
            "Kueue places ranks by this label",
            _QUESTION,
        )
        for pod in observed.workers
        if pod.index != wanted.get(pod.name, pod.index) and pod.deleted is None
    ]
