"""
The job of the launcher pod that we run in, where nobody says which one it is.

Owns: the places to look, in their order: the labels that the downward API has put into a file, what mpi-operator
leaves in its launchers, and the pod itself.
"""

from __future__ import annotations

import os

from mpirt import names
from mpirt.discover.selection import JOB_LABELS, by_job, by_own_labels
from mpirt.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpirt.discover.selection import Selection
    from mpirt.discover.source import Pods
    from mpirt.kubeapi.access.steps import Deadline

# mpi-operator's name for a launcher, and its host name, is the job's with this after it.
_LAUNCHER_SUFFIX = f"-{names.LAUNCHER}"
# Labels of a pod are a few KB at most.
_FILE_LIMIT = 256 * 1024
_CURE = "name it with --job, --statefulset or --selector, or set MPIRT_JOB"


def own_pod(environ: Mapping[str, str]) -> str:
    """The name of the pod that we run in, as far as its host name tells; nothing outside of a cluster."""
    return os.uname().nodename if environ.get("KUBERNETES_SERVICE_HOST") else ""


def job_at_hand(environ: Mapping[str, str], host: str) -> Selection | None:
    """
    What can be known without asking anybody; None where the pod itself has to be read. `host` is own_pod().

    Raises UsageError where there is no pod to read.
    """
    path = _labels_path(environ)
    if found := by_own_labels(_read_labels(path), origin=path):
        return found
    if not host:
        raise UsageError(f"no job: not in a launcher pod (no KUBERNETES_SERVICE_HOST); {_CURE}")
    if environ.get(names.KUBEFLOW_ROLE_VARIABLE) == names.LAUNCHER and host.endswith(_LAUNCHER_SUFFIX):
        # The pod's own name has something random at its end, which its host name doesn't tell.
        job = host.removesuffix(_LAUNCHER_SUFFIX)
        return by_job(job, origin=f"the job of host {host}:", labels=(names.KUBEFLOW_JOB_LABEL,))
    return None


def job_of_pod(environ: Mapping[str, str], host: str, pods: Pods, deadline: Deadline) -> Selection:
    """The job that the labels of our own pod name. Raises UsageError that says where it was looked for."""
    own = pods.named(host, deadline)
    if own is None:
        where = f"there is no pod by our host name {host}, and no labels in {_labels_path(environ)}"
        raise UsageError(f"no job: {where}; {_CURE}")
    found = by_own_labels(own.labels, origin=f"pod {host}")
    if found is None:
        raise UsageError(f"no job: pod {host} has none of the labels {', '.join(JOB_LABELS)}; {_CURE}")
    return found


def parse_labels(text: str) -> dict[str, str]:
    """The downward API's form: a line for each label, the value in quotes. No label holds a quote."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip(): found.strip().strip('"') for name, equals, found in pairs if equals}


def _labels_path(environ: Mapping[str, str]) -> str:
    return environ.get(names.LABELS_FILE_VARIABLE, "") or names.LABELS_FILE


def _read_labels(path: str) -> dict[str, str]:
    """Labels in a file; none where it can't be read, which is the usual case."""
    try:
        with open(path, "rb") as file:
            return parse_labels(file.read(_FILE_LIMIT).decode("utf-8", "replace"))
    except OSError:
        return {}
