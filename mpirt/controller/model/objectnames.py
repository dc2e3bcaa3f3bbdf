"""
Names, labels and annotations of a job's objects.

Owns: the names, which are those that mpi-operator uses, and the labels by which objects are found. Names are
fixed, so that nothing can be created twice.
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
    kinds.DISRUPTION_BUDGET: "-worker",
    kinds.POD_GROUP: "",
    kinds.STATEFUL_SET: "-worker",
    kinds.JOB: "-launcher",
}

# The kinds that create pods, whose names begin with their own.
_MAKERS = frozenset({kinds.STATEFUL_SET, kinds.JOB})

# A label of a StatefulSet's pods holds its name, a hyphen and up to ten characters; the limit of a label is 63.
LONGEST_JOB_NAME = 63 - len("-worker") - len("-0123456789")

_MOST_DIGITS = len("0123456789")

MOST_WORKERS = 10_000
"""How many workers a job may have, if their names fit into the objects that hold all of them."""

# On every object of ours; informers select by it.
OPERATOR: Mapping[str, str] = {names.KUBEFLOW_OPERATOR_LABEL: "mpi-operator"}

# The selector of the pod informer: pods of training-operator's MPIJobs have the other value.
ANY_OPERATOR = f"{names.KUBEFLOW_OPERATOR_LABEL} in (mpi-operator,mpijob-controller)"

# On a StatefulSet, its pods and a launcher Job: digests of what the user wrote for them. On the StatefulSet also
# the generation that it had after our last write.
TEMPLATE_ANNOTATION = f"{names.PREFIX}/template"
WORKERS_ANNOTATION = f"{names.PREFIX}/workers"
GENERATION_ANNOTATION = f"{names.PREFIX}/generation"
# On the StatefulSet: whether workers of an earlier one still exist, whose names its own pods can't have yet.
EARLIER_ANNOTATION = f"{names.PREFIX}/earlier-workers"
# On the ConfigMap: the job's history, if the CRD drops it from the status.
HISTORY_ANNOTATION = f"{names.PREFIX}/history"
# On a TrainingJob, for Arena: how many seconds it may wait for its workers, and whether that was too long for it.
PATIENCE_ANNOTATION = "job-supervisor.kube-ai.io/max-wait-time"
GAVE_UP_ANNOTATION = "job-supervisor.kube-ai.io/job-status"
GAVE_UP = "timeout"
# On a launcher pod: the digest of the list of hosts that it has read last.
HOSTS_ANNOTATION = f"{names.PREFIX}/hosts"
# On a launcher pod: how it has got the programs of the runtime image, and why.
RUNTIME_ANNOTATION = f"{names.PREFIX}/runtime"
# The labels of mpi-operator v1 and of et-operator: the group, and the names of those for job and role.
_EARLIER_LABELS: Mapping[str, tuple[str, str, str]] = {
    kinds.MPI_JOB: (names.KUBEFLOW_GROUP, names.KUBEFLOW_V1_JOB_LABEL, names.KUBEFLOW_V1_ROLE_LABEL),
    kinds.TRAINING_JOB: (names.TRAINING_GROUP, names.TRAINING_JOB_LABEL, names.TRAINING_ROLE_LABEL),
}
# In the ConfigMap: how many workers a launcher pod waits for.
NEEDED_KEY = "workers-needed"


def object_name(kind: str, job: str) -> str:
    """Return the name of the job's object of that kind."""
    return job + _SUFFIX[kind]


def object_names(job: str) -> dict[str, str]:
    """Return the names of all of the job's objects, by kind."""
    return {kind: job + suffix for kind, suffix in _SUFFIX.items()}


def job_of(kind: str, name: str) -> str:
    """Return the name of the job whose StatefulSet, launcher Job or pod has that name; empty for others."""
    makers = _MAKERS & {kind}
    if kind == kinds.POD:
        makers, name = _MAKERS, name.rpartition("-")[0]
    suffixes = (_SUFFIX[maker] for maker in makers)
    return next((name.removesuffix(suffix) for suffix in suffixes if name.endswith(suffix)), "")


def worker_name(job: str, number: int) -> str:
    """Return the name of a worker's pod; it is its host name, too."""
    return f"{object_name(kinds.STATEFUL_SET, job)}-{number}"


def worker_names(job: str, replicas: int) -> tuple[str, ...]:
    """Return the names of the first workers, in order."""
    return tuple(worker_name(job, number) for number in range(replicas))


def worker_number(name: str) -> int:
    """Return the number at the end of a worker's name; -1 if there is none, or none that a worker can have."""
    digits = name.rpartition("-")[2]
    # Python refuses to convert thousands of digits, and users may write any name into a ScaleIn.
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else -1


def job_selector(kind: str, job: str) -> dict[str, str]:
    """Return the labels that all pods of a job have. Jobs of different kinds may have the same name."""
    of_kind = {} if kind == kinds.MPI_JOB else {names.JOB_KIND_LABEL: kind}
    return {**OPERATOR, names.KUBEFLOW_JOB_LABEL: job, **of_kind}


def job_labels(kind: str, job: str) -> dict[str, str]:
    """Return the labels of every object that belongs to a job."""
    return {**job_selector(kind, job), "app": job}


def pod_labels(kind: str, job: str, role: str) -> dict[str, str]:
    """Return the labels of a role's pods, which selectors use, too."""
    return {**job_selector(kind, job), names.KUBEFLOW_ROLE_LABEL: role}


def template_labels(kind: str, job: str, role: str) -> dict[str, str]:
    """
    Return the labels of a role's pod template: those that select its pods, and those of earlier operators, which
    other programs may read.

    No selector uses the latter: pods of an earlier version of the controller lack them.
    """
    group, of_job, of_role = _EARLIER_LABELS[kind]
    return {**pod_labels(kind, job, role), names.KUBEFLOW_V1_GROUP_LABEL: group, of_job: job, of_role: role}


def selector(labels: Mapping[str, str]) -> str:
    """Return labels as a label selector for a query."""
    return ",".join(f"{name}={value}" for name, value in labels.items())
