"""
The pods of a job, as a watched set: which selector covers them, and the pods, kept for `mpirt-discover`.

Owns: the choice of the selector, by the environment and by the labels of one of the pods; the pods as the watch
reports them, from the moment they are wanted, and whether all of them are there; and which label selectors the
labels of these pods can decide. What is kept of a pod is decided by the function that is handed in. No I/O.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mpirt import names
from mpirt.kubeapi.watch.news import News, NewsKind
from mpirt.objects import table, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mpirt.objects import Body

    Labels = Mapping[str, object]
    # Names and values of labels; None is any value.
    Terms = Mapping[str, str | None]

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

_DNS = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_WORD = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
# Whatever else there is, only the API server knows what it means, and whether it means anything.
_TERM = re.compile(rf"((?:{_DNS}(?:\.{_DNS})*/)?{_WORD})(?:=({_WORD}))?")
_OPERATORS = ("in", "notin")


def given_scope(environ: Mapping[str, str]) -> str | None:
    """The selector that the environment names; None where it doesn't."""
    # MPIRT_JOB is a job by any of several labels: only a pod shows which one.
    return environ.get(names.SELECTOR_VARIABLE, "").strip() or None


def scope_of(pod: Mapping[str, object]) -> str:
    """The selector of all pods of the same job; EVERYTHING where the pod names none."""
    labels = table(pod, "metadata", "labels")
    return next((f"{name}={text(labels, name)}" for name in _JOB_LABELS if text(labels, name)), EVERYTHING)


class KeptPods:
    """Nothing, until they are wanted."""

    __slots__ = ("_is_wanted", "_keep", "_pods", "is_complete")

    def __init__(self, keep: Callable[[Body], Any]) -> None:
        self._keep = keep
        self.forget()

    def forget(self) -> None:
        """Keep nothing, and nothing of what will be reported."""
        self._pods: dict[str, tuple[Labels, Any]] = {}
        self._is_wanted = self.is_complete = False
        """`is_complete`: whether these are all, as of the last news."""

    def want(self) -> None:
        """Keep the pods of all news from now on. The next whole list makes them complete."""
        self._is_wanted = True

    def take(self, news: News) -> None:
        """What the watch of the set reports."""
        if not self._is_wanted:
            return
        match news.kind:
            case NewsKind.SEEN:
                body = news.pod or {}
                self._pods[news.name] = table(body, "metadata", "labels"), self._keep(body)
            case NewsKind.GONE:
                self._pods.pop(news.name, None)
            case NewsKind.LISTED:
                self._pods = {name: pod for name, pod in self._pods.items() if name in news.names}
                # The pods of a list that had begun before want() are partly missing.
                self.is_complete = len(self._pods) == len(news.names)
            case NewsKind.REFUSED:
                self.forget()

    def select(self, watched: str, selectors: Sequence[str]) -> list[Any]:
        """What is kept of the pods that one of the selectors finds, where covers() holds."""
        if watched in selectors:
            return [pod for _, pod in self._pods.values()]
        wanted = [terms for selector in selectors if (terms := _terms(selector)) is not None]
        return [pod for labels, pod in self._pods.values() if any(_holds(terms, labels) for terms in wanted)]


def covers(watched: str, selectors: Sequence[str]) -> bool:
    """
    Whether all pods that these selectors find are in the watched set, and their labels say which these are.

    A selector finds no more than a set that is watched by some of its terms.
    """
    return bool(selectors) and all(_covers(watched, selector) for selector in selectors)


def _covers(watched: str, selector: str) -> bool:
    if selector == watched:
        return True
    outer, inner = _terms(watched) if watched else {}, _terms(selector)
    return outer is not None and inner is not None and outer.items() <= inner.items()


def _terms(selector: str) -> Terms | None:
    """What a selector of the simplest form asks for: a=b,c. None for every other form."""
    found: dict[str, str | None] = {}
    for term in selector.split(","):
        read = _TERM.fullmatch(term)
        if read is None or read[1] in found or read[1] in _OPERATORS:
            return None
        found[read[1]] = read[2]
    return found


def _holds(terms: Terms, labels: Labels) -> bool:
    return all(name in labels and value in (None, labels[name]) for name, value in terms.items())
