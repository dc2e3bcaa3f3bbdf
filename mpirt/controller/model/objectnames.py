"""
What the objects of a job are called, and how objects tell whose they are.

Owns: the names, which are those that mpi-operator uses, and the labels. Names are fixed, so that nothing can be
made twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from mpirt import names
from mpirt.controller.model import kinds

_SUFFIX: Mapping[str, str] = {
    kinds.CONFIG_MAP: "-config",
    kinds.SERVICE_ACCOUNT: "-launcher",
    kinds.ROLE: "-launcher",
    kinds.ROLE_BINDING: "-launcher",
    kinds.SERVICE: "",
    kinds.STATEFUL_SET: "-worker",
    kinds.JOB: "-launcher",
}

# What makes pods, whose names begin with its own.
_MAKERS = frozenset({kinds.STATEFUL_SET, kinds.JOB})

# A StatefulSet's name stands, with a hyphen and up to ten characters, in a label of its pods: 63 at most.
LONGEST_JOB_NAME = 63 - len("-worker") - len("-0123456789")

# On every object of ours, and what informers select by.
OPERATOR: Mapping[str, str] = {names.KUBEFLOW_OPERATOR_LABEL: "mpi-operator"}

# The same as informers select pods: training-operator's MPIJobs have the other value.
ANY_OPERATOR = f"{names.KUBEFLOW_OPERATOR_LABEL} in (mpi-operator,mpijob-controller)"

# On a StatefulSet, its pods and a launcher Job: digests of what the user wrote for them, and on the StatefulSet
# the generation that it had after our last write.
TEMPLATE_ANNOTATION = f"{names.PREFIX}/template"
WORKERS_ANNOTATION = f"{names.PREFIX}/workers"
GENERATION_ANNOTATION = f"{names.PREFIX}/generation"
# On the StatefulSet: whether workers of an earlier one are still there, whose names it can't have yet.
EARLIER_ANNOTATION = f"{names.PREFIX}/earlier-workers"


# On the ConfigMap, where the CRD drops what the status says of a job's attempts.
HISTORY_ANNOTATION = f"{names.PREFIX}/history"
# In the ConfigMap: for how many workers a launcher pod waits.
NEEDED_KEY = "workers-needed"


def object_name(kind: str, job: str) -> str:
    """The name of the job's object of that kind."""
    return job + _SUFFIX[kind]


def job_of(kind: str, name: str) -> str:
    """The job whose StatefulSet or launcher Job, or whose pod, has that name; nothing for others."""
    makers = _MAKERS & {kind}
    if kind == kinds.POD:
        makers, name = _MAKERS, name.rpartition("-")[0]
    suffixes = (_SUFFIX[maker] for maker in makers)
    return next((name.removesuffix(suffix) for suffix in suffixes if name.endswith(suffix)), "")


def worker_names(job: str, replicas: int) -> tuple[str, ...]:
    """The names of the workers' pods, in order, which are their host names, too."""
    return tuple(f"{object_name(kinds.STATEFUL_SET, job)}-{ordinal}" for ordinal in range(replicas))


def job_labels(job: str) -> dict[str, str]:
    """The labels of everything that belongs to a job."""
    return {**OPERATOR, names.KUBEFLOW_JOB_LABEL: job, "app": job}


def pod_labels(job: str, role: str) -> dict[str, str]:
    """The labels of a role's pods, by which they are also selected."""
    return {**OPERATOR, names.KUBEFLOW_JOB_LABEL: job, names.KUBEFLOW_ROLE_LABEL: role}


def template_labels(job: str, role: str) -> dict[str, str]:
    """
    The labels in a role's pod template: those that select its pods, and mpi-operator v1's, which others may read.

    No selector holds the latter: pods of an earlier version of the controller don't have them.
    """
    return {
        **pod_labels(job, role),
        names.KUBEFLOW_V1_GROUP_LABEL: names.KUBEFLOW_GROUP,
        names.KUBEFLOW_V1_JOB_LABEL: job,
        names.KUBEFLOW_V1_ROLE_LABEL: role,
    }


def selector(labels: Mapping[str, str]) -> str:
    """Labels as the API takes them in a query."""
    return ",".join(f"{name}={value}" for name, value in labels.items())
