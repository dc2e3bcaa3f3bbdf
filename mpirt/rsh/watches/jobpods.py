"""
The pods of a job, as a watched set: which selector covers them, and the answers to questions about all of them.

Owns: the choice of the selector, by the environment and by the labels of one of the pods; the pods as the watch
reports them, from the first question on; which label selectors the labels of these pods can decide; and when the
watch is good enough to answer from. In any doubt the API server has to be asked, which is never wrong. No I/O.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mpirt import names
from mpirt.errors import MpirtError
from mpirt.kubeapi.watch.news import News, NewsKind
from mpirt.objects import table, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mpirt.kubeapi.watch.link import WatchLink
    from mpirt.objects import Body

    Labels = Mapping[str, object]
    # Names and values of labels; None is any value.
    Terms = Mapping[str, str | None]
    # What is kept of a pod that is watched.
    Keep = Callable[[Body], Any]
    # Gets what is kept of each pod, or why the pods are not known.
    HearPods = Callable[[Sequence[Any] | "NotKnown"], None]

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

# A watch first reports what has changed since its list, and not when that is over.
SETTLES = 0.5
# The API server sends a bookmark every minute. A watch on which none comes may be a connection that something on
# the way keeps open, though its other end is gone.
_LONGEST_SILENCE = 90.0


class NotKnown(MpirtError):
    """Why the API server has to be asked."""


def given_scope(environ: Mapping[str, str]) -> str | None:
    """The selector that the environment names; None where it doesn't."""
    # MPIRT_JOB is a job by any of several labels: only a pod shows which one.
    return environ.get(names.SELECTOR_VARIABLE, "").strip() or None


def scope_of(pod: Mapping[str, object]) -> str:
    """The selector of all pods of the same job; EVERYTHING where the pod names none."""
    labels = table(pod, "metadata", "labels")
    return next((f"{name}={text(labels, name)}" for name in _JOB_LABELS if text(labels, name)), EVERYTHING)


class PodQuestions:
    """The questions of one hub, and the pods that they are about: none until the first question."""

    __slots__ = ("_is_complete", "_is_wanted", "_keep", "_pods", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[tuple[Sequence[str], HearPods]] = []
        self.forget()

    def forget(self) -> None:
        """It is another watch from now on: keep nothing, and nothing of what will be reported."""
        self._pods: dict[str, tuple[Labels, Any]] = {}
        # Whether the pods of all news are kept; and whether these are all pods, as of the last news.
        self._is_wanted = self._is_complete = False

    def end(self) -> None:
        """No pod is followed any more."""
        self.forget()
        self._answer(lambda _: NotKnown("no command runs in these pods any more"))

    @property
    def are_waiting(self) -> bool:
        """Whether answer() has something to do."""
        return bool(self._waiting)

    def ask(self, selectors: Sequence[str], keep: Keep, hear: HearPods) -> None:
        """Wait for an answer. The first `keep` is used for all."""
        if not self._is_wanted:
            self._keep = keep
        self._waiting.append((selectors, hear))

    def take(self, news: News) -> None:
        """Take what the common watch reports."""
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
                # The pods of a list that had begun before the first question are partly missing.
                self._is_complete = len(self._pods) == len(news.names)
            case NewsKind.REFUSED:
                self.forget()

    def answer(self, link: WatchLink | None, watched: str, now: float) -> None:
        """Answer the questions, after a step of the watch; not before it has read all that has come."""
        if not self._waiting or (link is not None and link.has_more):
            return
        why = self._doubt(link, now)
        self._answer(lambda selectors: NotKnown(why) if why else self._select(watched, selectors))

    def _answer(self, answer: Callable[[Sequence[str]], Sequence[Any] | NotKnown]) -> None:
        waiting, self._waiting = self._waiting, []
        for selectors, hear in waiting:
            hear(answer(selectors))

    def _doubt(self, link: WatchLink | None, now: float) -> str:
        """Why the API server has to be asked; empty if it needn't be."""
        if link is None or link.opened_at is None:
            return "the watch on the pods is not open at the moment"
        if now - link.heard_at > _LONGEST_SILENCE:
            link.look(anew=True)
            return f"the API server has not sent anything for {now - link.heard_at:.0f} s"
        if not self._is_complete:
            self._is_wanted = True
            link.look(anew=True)
            return "the pods are being listed for the first time"
        return "the watch on the pods has just begun" if now - link.opened_at < SETTLES else ""

    def _select(self, watched: str, selectors: Sequence[str]) -> list[Any]:
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
