"""
What is done to workers one by one.

Owns: the decision to replace all workers of an earlier template at once, and the labels by which others read off
their ranks.

A StatefulSet replaces one worker after the other, each when the one before it is Ready: that keeps an elastic job
at work. In any other job nothing works until all are new. The StatefulSet keeps its strategy RollingUpdate, which
means the same in every Kubernetes (maxUnavailable needs a feature gate in most), and rolls by itself where no
controller runs: pods only go sooner than it would take them. Its pods share the labels of its template, so each
can be labelled only once it exists.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpirt import names
from mpirt.controller.manifests.replica_index import worker_indices
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, Patch, WriteStatus
from mpirt.controller.model.digests import digest
from mpirt.controller.model.reading import table, text
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import is_behind, is_of_revision, job_end
from mpirt.controller.observed.observe import Observed

# One question for all: who may not label one pod may label none.
_QUESTION = digest(names.KUBEFLOW_INDEX_LABEL)


def replaced_workers(spec: JobSpec, observed: Observed, changes: Iterable[Action]) -> list[Action]:
    """
    The deletion of all workers that the StatefulSet is about to replace.

    None while `changes` has anything in store for it: an edit by hand makes another revision, too, and is undone
    before it costs a worker.
    """
    workers = observed.live(kinds.STATEFUL_SET)
    if spec.workers.elastic is not None or workers is None or is_behind(workers) or job_end(observed) is not None:
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
    """The labels to write now; none while the API server has just refused one."""
    if any(rejection.digest == _QUESTION for rejection in observed.rejections):
        return []
    wanted = worker_indices(spec)
    path = f"/metadata/labels/{names.KUBEFLOW_INDEX_LABEL.replace('/', '~1')}"
    return [
        Patch(
            kinds.POD,
            pod.name,
            (
                {"op": "test", "path": "/metadata/uid", "value": pod.uid},
                {"op": "add", "path": path, "value": wanted[pod.name]},
            ),
            "Kueue places ranks by this label",
            _QUESTION,
        )
        for pod in observed.workers
        if pod.index != wanted.get(pod.name, pod.index) and pod.deleted is None
    ]
