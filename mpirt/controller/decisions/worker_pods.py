"""
Actions on single worker pods.

Owns: the decision to delete all workers of an old template at once, and the labels that show workers' ranks to
other programs.

A StatefulSet replaces one worker after the other, each when the previous one is Ready, which keeps an elastic job
running. Any other job can't run until all workers are new. The StatefulSet keeps the strategy RollingUpdate, which
means the same in every version of Kubernetes (maxUnavailable needs a feature gate in most), and so it updates its
pods even if no controller runs; the controller only deletes them sooner. Its pods share the labels of its
template, so each can be labelled with its rank only once it exists.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpirt import names
from mpirt.controller.manifests.workers import worker_indices
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, Patch, WriteStatus, is_object, pointer
from mpirt.controller.model.reading import digest, table, text
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import Observed, is_behind, is_of_revision

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
    knows_its_revision = bool(text(table(workers.body, "status"), "updateRevision"))
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
