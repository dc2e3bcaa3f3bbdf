"""
Workers of an earlier template.

Owns: the decision to replace them all at once. A StatefulSet replaces one after the other, each when the one
before it is Ready: that keeps an elastic job at work. In any other job nothing works until all are new.

The StatefulSet keeps its strategy RollingUpdate, which means the same in every Kubernetes (maxUnavailable needs a
feature gate in most), and rolls by itself where no controller runs: pods only go sooner than it would take them.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, WriteStatus
from mpirt.controller.model.reading import table, text
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import is_behind, is_of_revision
from mpirt.controller.observed.observe import Observed


def replaced_workers(spec: JobSpec, observed: Observed, changes: Iterable[Action]) -> list[Action]:
    """
    The deletion of all workers that the StatefulSet is about to replace.

    None while `changes` has anything in store for it: an edit by hand makes another revision, too, and is undone
    before it costs a worker.
    """
    workers = observed.live(kinds.STATEFUL_SET)
    if spec.workers.elastic is not None or workers is None or is_behind(workers):
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
