"""
Which pods belong to the job that was asked for.

Owns: the label selectors for each way to name a job, so that the API server does the filtering, and what labels
can't say. No I/O.
"""

from __future__ import annotations

from mpirt import names
from mpirt.errors import UsageError
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpirt.discover.pods import Pod

# Who labels pods with their job's name: our controller; mpi-operator v2beta1, training-operator; mpi-operator v1.
JOB_LABELS = (names.JOB_LABEL, names.KUBEFLOW_JOB_LABEL, names.KUBEFLOW_V1_JOB_LABEL)

_IN_A_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
_NAME_LIMIT = 63


class Selection(Value):
    """Pods, as they are asked for: one request for each of the label selectors."""

    asked: str
    """Who asked for what, for messages: `--job train`."""
    selectors: tuple[str, ...]
    stateful_set: str = ""
    """Only pods that this one controls; no label says so."""

    def holds(self, pod: Pod) -> bool:
        """Whether a pod that has the labels belongs to it."""
        if not self.stateful_set:
            return True
        owner = pod.owner
        return owner is not None and (owner.kind, owner.name) == ("StatefulSet", self.stateful_set)


def by_job(name: str, *, origin: str, labels: tuple[str, ...] = JOB_LABELS) -> Selection:
    """The pods of a job, by whichever of the labels its controller sets."""
    checked = _name(name, origin)
    return Selection(f"{origin} {checked}", tuple(f"{label}={checked}" for label in labels))


def by_stateful_set(name: str, *, origin: str) -> Selection:
    """The pods of a StatefulSet. All pods of StatefulSets have the label, so it needs no right to read those."""
    checked = _name(name, origin)
    return Selection(f"{origin} {checked}", (names.POD_NAME_LABEL,), stateful_set=checked)


def by_selector(text: str, *, origin: str) -> Selection:
    """The pods with these labels. The API server judges the text; an empty one would mean every pod there is."""
    if not text.strip():
        raise UsageError(f"{origin} is empty: expected a label selector, as app=train")
    return Selection(f"{origin} {text.strip()}", (text.strip(),))


def by_own_labels(labels: Mapping[str, str], *, origin: str) -> Selection | None:
    """The job that a launcher's own labels name; None where they name none."""
    for label in JOB_LABELS:
        if name := labels.get(label):
            return by_job(name, origin=f"{origin}: {label}", labels=(label,))
    return None


def _name(name: str, origin: str) -> str:
    if not name or len(name) > _NAME_LIMIT or name.strip(_IN_A_NAME):
        raise UsageError(f"{origin} {name[:80]!r}: expected a name of letters, digits, hyphens, dots, at most 63")
    return name
