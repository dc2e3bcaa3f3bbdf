"""
The label training.kubeflow.org/replica-index: a pod's rank among those of its job, from 0.

Owns: which pods get it, and its value. Pods of a StatefulSet share the labels of its template, so workers can only
be labelled once they exist, with one write each. Kueue's topology-aware scheduling reads it, to put neighbouring
ranks on neighbouring nodes; so it is written for jobs that Kueue places by topology, and for no others. All
workers have apps.kubernetes.io/pod-index, which Kubernetes writes itself.
"""

from __future__ import annotations

from mpirt import names
from mpirt.controller.model.reading import rows, text
from mpirt.controller.model.spec import JobSpec

# The gate by which Kueue holds pods until it has chosen a node for each. Kueue adds it to the templates.
_KUEUE_GATE = "kueue.x-k8s.io/topology"


def launcher_index(spec: JobSpec) -> dict[str, str]:
    """Return the launcher's label: rank 0 if it runs ranks, too, otherwise none."""
    return {names.KUBEFLOW_INDEX_LABEL: "0"} if spec.launcher.works_too else {}


def worker_indices(spec: JobSpec) -> dict[str, str]:
    """Return each worker's label value by pod name; empty if Kueue does not place the job by topology."""
    if not any(text(row, "name") == _KUEUE_GATE for row in rows(spec.workers.template.spec, "schedulingGates")):
        return {}
    first = 1 if spec.launcher.works_too else 0
    workers = spec.workers.names
    return {name: str(index) for index, name in enumerate(workers, start=first)}
