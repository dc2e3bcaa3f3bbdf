"""
Workers whose ranks others read off a label.

Owns: the decision to label them, once they exist: the pods of a StatefulSet share the labels of its template.
"""

from __future__ import annotations

from mpirt import names
from mpirt.controller.manifests.replica_index import worker_indices
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Patch
from mpirt.controller.model.digests import digest
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.observe import Observed

# One question for all: who may not label one pod may label none.
_QUESTION = digest(names.KUBEFLOW_INDEX_LABEL)


def label_ranks(spec: JobSpec, observed: Observed) -> list[Patch]:
    """The labels to write now; none while the API server has just refused one."""
    if any(refusal.digest == _QUESTION for refusal in observed.refusals):
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
