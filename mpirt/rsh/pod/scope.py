"""
Which label selector covers the pods of a job.

Owns: the choice, by what the environment says and by the labels of one of the pods. No I/O.
"""

from __future__ import annotations

from mpirt import names
from mpirt.objects import table, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

EVERYTHING = ""
"""The selector of all pods in a namespace."""

# Who labels pods with their job's name: our controller; mpi-operator v2beta1, training-operator; mpi-operator v1;
# JobSet, whose Jobs have other names; Jobs, and up to Kubernetes 1.26.
_JOB_LABELS = (
    names.JOB_LABEL,
    names.KUBEFLOW_JOB_LABEL,
    names.KUBEFLOW_V1_JOB_LABEL,
    "jobset.sigs.k8s.io/jobset-name",
    "batch.kubernetes.io/job-name",
    "job-name",
)


def given_scope(environ: Mapping[str, str]) -> str | None:
    """The selector that the environment names; None where it doesn't."""
    # MPIRT_JOB is a job by any of several labels: which one, only a pod tells.
    return environ.get(names.SELECTOR_VARIABLE, "").strip() or None


def scope_of(pod: Mapping[str, object]) -> str:
    """The selector of all pods of the same job; EVERYTHING where the pod names none."""
    labels = table(pod, "metadata", "labels")
    return next((f"{name}={text(labels, name)}" for name in _JOB_LABELS if text(labels, name)), EVERYTHING)
