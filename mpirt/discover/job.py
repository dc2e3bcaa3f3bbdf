"""
The pods of a job: asking the API server for them, and finding the job of the launcher pod that we run in.

Owns: the requests for pods; and, where the user names no job, the places to look, in their order: the labels that
the downward API has put into a file, what mpi-operator leaves in its launchers, and the pod itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from mpirt import names
from mpirt.discover.discovery import Pod, read_pod
from mpirt.discover.options import JOB_LABELS, Selection, by_job, by_own_labels
from mpirt.errors import UsageError
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.answers import NotFound, Rejected
from mpirt.kubeapi.request.api import Api

# What the API server says to a selector that it can't read.
_BAD_REQUEST = 400
# mpi-operator's name for a launcher, and its host name, is the job's with this after it.
_LAUNCHER_SUFFIX = f"-{names.LAUNCHER}"
# Labels of a pod are a few KB at most.
_FILE_LIMIT = 256 * 1024
_CURE = "name it with --job, --statefulset or --selector, or set MPIRT_JOB"


class ApiPods:
    """The pods as the API server has them: read anew at each question, from no cache of its own either."""

    __slots__ = ("_api", "_namespace")

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace

    def select(self, selection: Selection, deadline: Deadline) -> list[Pod]:
        """Ask once for each label selector; a pod that several of them find counts once."""
        found: dict[str, Pod] = {}
        for labels in selection.selectors:
            try:
                pods = self._api.list_pods(self._namespace, read_pod, deadline, labels=labels)
            except Rejected as error:
                if error.failure.status == _BAD_REQUEST:
                    raise UsageError(f"{selection.asked}: {error.failure.message}") from error
                raise
            found.update((pod.name, pod) for pod in pods if selection.holds(pod))
        return list(found.values())

    def named(self, name: str, deadline: Deadline) -> Pod | None:
        """Read one pod."""
        try:
            return read_pod(self._api.get_pod(self._namespace, name, deadline))
        except NotFound:
            return None


def own_pod(environ: Mapping[str, str]) -> str:
    """The name of the pod that we run in, as far as its host name tells; nothing outside of a cluster."""
    return os.uname().nodename if environ.get("KUBERNETES_SERVICE_HOST") else ""


def job_at_hand(environ: Mapping[str, str], host: str) -> Selection | None:
    """
    What can be known without a request; None where the pod itself has to be read. `host` is own_pod().

    Raises UsageError where there is no pod to read.
    """
    path = labels_path(environ)
    if found := by_own_labels(_read_labels(path), origin=path):
        return found
    if not host:
        raise UsageError(f"no job: not in a launcher pod (no KUBERNETES_SERVICE_HOST); {_CURE}")
    if environ.get(names.KUBEFLOW_ROLE_VARIABLE) == names.LAUNCHER and host.endswith(_LAUNCHER_SUFFIX):
        # The pod's own name has something random at its end, which its host name doesn't tell.
        job = host.removesuffix(_LAUNCHER_SUFFIX)
        return by_job(job, origin=f"the job of host {host}:", labels=(names.KUBEFLOW_JOB_LABEL,))
    return None


def job_of_pod(environ: Mapping[str, str], host: str, pods: ApiPods, deadline: Deadline) -> Selection:
    """The job that the labels of our own pod name. Raises UsageError that says where it was looked for."""
    own = pods.named(host, deadline)
    if own is None:
        where = f"there is no pod by our host name {host}, and no labels in {labels_path(environ)}"
        raise UsageError(f"no job: {where}; {_CURE}")
    found = by_own_labels(own.labels, origin=f"pod {host}")
    if found is None:
        raise UsageError(f"no job: pod {host} has none of the labels {', '.join(JOB_LABELS)}; {_CURE}")
    return found


def parse_labels(text: str) -> dict[str, str]:
    """The downward API's form: a line for each label, the value in quotes. No label holds a quote."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip(): found.strip().strip('"') for name, equals, found in pairs if equals}


def labels_path(environ: Mapping[str, str]) -> str:
    """The file into which the downward API puts the labels of our own pod."""
    return environ.get(names.LABELS_FILE_VARIABLE, "") or names.LABELS_FILE


def _read_labels(path: str) -> dict[str, str]:
    """Labels in a file; none where it can't be read, which is the usual case."""
    try:
        with open(path, "rb") as file:
            return parse_labels(file.read(_FILE_LIMIT).decode("utf-8", "replace"))
    except OSError:
        return {}
