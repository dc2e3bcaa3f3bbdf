"""
Which pods: the one that a host name or an address means where no pod has that name, and those of a job.

Owns: what to ask for, and the choice among the pods that come back. Of a job's, as a watched set: the selector, by
the environment and by the labels of one of the pods; the pods as the watch reports them, kept for `mpirt-discover`
from the moment they are wanted, and whether all of them are there; and which label selectors the labels of these
pods can decide. What is kept of a pod is decided by the function that is handed in, as is the list. No I/O.

Pods of a StatefulSet are called by their host names. Those of an Indexed Job are not: the pod of index 3 has the
host name JOB-3 and a name like JOB-3-x7k2p. So have those of JobSets, TrainJobs and Flux, which make such Jobs.
Kubernetes selects by label, but by no host name, so what no label leads to is looked for among all pods that live.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

from mpirt import names
from mpirt.errors import MpirtError, NoPod
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.answers import Forbidden, NotFound
from mpirt.kubeapi.watch.listwatch import News, NewsKind
from mpirt.objects import rows, table, text
from mpirt.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mpirt.kubeapi.access.steps import Steps
    from mpirt.objects import Body

    # Api.list_steps, which takes `labels` and `fields`, too.
    Lists = Callable[..., Steps[list["Candidate"]]]
    Labels = Mapping[str, object]
    # Names and values of labels; None is any value.
    Terms = Mapping[str, str | None]

_JOB = "batch.kubernetes.io/job-name"
# Up to Kubernetes 1.26; later ones have both.
_JOB_BEFORE = "job-name"
# A label since 1.28, an annotation since 1.21.
_INDEX = "batch.kubernetes.io/job-completion-index"
_LIVING = "status.phase!=Failed,status.phase!=Succeeded"
_ENDED = ("Failed", "Succeeded")
_MOST_NAMED = 5
# Until then the command does not start.
_SECONDS = 5.0


class Ambiguous(NoPod):
    """Several pods are meant; waiting does not help."""


class Question(Value):
    """One list: which pods."""

    labels: str = ""
    fields: str = ""


class Candidate(Value):
    """As much of a pod as is needed here."""

    name: str
    phase: str
    deleting: bool
    job: str
    index: str
    hostname: str
    subdomain: str
    addresses: tuple[str, ...]

    @property
    def lives(self) -> bool:
        return not self.deleting and self.phase not in _ENDED

    @property
    def end(self) -> str:
        """How it is dead, in words."""
        return f"{self.name} is {'being deleted' if self.deleting else self.phase}"


def read_candidate(body: Mapping[str, object]) -> Candidate:
    """A pod as the API server has it."""
    metadata, spec, status = table(body, "metadata"), table(body, "spec"), table(body, "status")
    labels = table(metadata, "labels")
    return Candidate(
        name=text(metadata, "name"),
        phase=text(status, "phase"),
        deleting=bool(text(metadata, "deletionTimestamp")),
        job=text(labels, _JOB) or text(labels, _JOB_BEFORE),
        index=text(labels, _INDEX) or text(table(metadata, "annotations"), _INDEX),
        hostname=text(spec, "hostname"),
        subdomain=text(spec, "subdomain"),
        addresses=tuple(text(row, "ip") for row in rows(status, "podIPs")) or (text(status, "podIP"),),
    )


def questions(host: str) -> tuple[Question, ...]:
    """What to list, one after the other until an answer names a pod."""
    if _is_address(host):
        # The field has the first address of two only.
        return Question(fields=f"status.podIP={_normal(host)}"), Question(fields=_LIVING)
    job, index = _job_and_index(host)
    by_labels = (Question(labels=f"{_JOB}={job},{_INDEX}={index}"),) if job else ()
    return *by_labels, Question(fields=_LIVING)


def choose(host: str, pods: Sequence[Candidate], *, service: str = "") -> str:
    """The pod that is meant, or nothing. Raises Ambiguous."""
    found = [pod.name for pod in _matching(host, [pod for pod in pods if pod.lives], service)]
    if len(found) > 1:
        others = len(found) - _MOST_NAMED
        names = f"{', '.join(sorted(found)[:_MOST_NAMED])}{f' and {others} others' if others > 0 else ''}"
        raise Ambiguous(f"host {host} may be any of the pods {names}; name the pod that is meant")
    return found[0] if found else ""


def find_pod(lists: Lists, namespace: str, host: str, deadline: Deadline, *, service: str = "") -> Steps[str]:
    """
    Look the host up, in steps that never wait. They return the pod's name.

    `lists` is an Api's list_steps, `host` an address or the first label of a host name, `service` the second.
    Raises Ambiguous, NoPod, and what list_steps raises; where listing is not allowed, a NoPod that says so.
    """
    dead: set[str] = set()
    what = f"{'address' if _is_address(host) else 'host name'} {host}"
    for question in questions(host):
        try:
            pods = yield from lists(
                namespace, read_candidate, deadline, labels=question.labels, fields=question.fields
            )
        except Forbidden as error:
            raise NoPod(f"the {what} can't be looked up: {error}") from error
        if found := choose(host, pods, service=service):
            return found
        dead |= {pod.end for pod in _matching(host, pods, service)}
    if dead:
        ends = ", ".join(sorted(dead)[:_MOST_NAMED])
        raise NoPod(f'no pod in namespace "{namespace}" that lives has the {what}: {ends}')
    raise NoPod(f'no pod in namespace "{namespace}" has the {what}')


class HostName:
    """A name that the API server knows no pod of, and what came of looking it up."""

    def __init__(self, lists: Lists, namespace: str, host: str, *, service: str = "") -> None:
        self._lists, self._namespace, self._host, self._service = lists, namespace, host, service
        self._is_settled = False
        self._said = ""

    def pod(self, error: NotFound) -> Steps[str]:
        """
        The pod that is meant by the name that `error` says is not found. It is looked up once.

        Raises Ambiguous, and where there is none, the error, with all that is known.
        """
        if not self._is_settled:
            try:
                return (yield from self._look_up())
            except Ambiguous:
                raise
            except NoPod as none:
                self._said = str(none)
            except MpirtError:
                # It may be answered the next time.
                raise error from None
        raise NotFound(f"{error}; {self._said}", error.failure) if self._said else error

    def _look_up(self) -> Steps[str]:
        deadline = Deadline(_SECONDS)
        try:
            found = yield from find_pod(self._lists, self._namespace, self._host, deadline, service=self._service)
        except NoPod:
            self._is_settled = True
            raise
        self._is_settled = True
        return found


def _matching(host: str, pods: Sequence[Candidate], service: str) -> list[Candidate]:
    if _is_address(host):
        wanted = _normal(host)
        return [pod for pod in pods if any(_normal(address) == wanted for address in pod.addresses)]
    job, index = _job_and_index(host)
    of_job = [pod for pod in pods if job and (pod.job, pod.index) == (job, index)]
    return of_job or [pod for pod in pods if pod.hostname == host and service in ("", pod.subdomain)]


def _job_and_index(host: str) -> tuple[str, str]:
    """JOB-3 as JOB and 3; nothing twice where it isn't of that form."""
    job, _, index = host.rpartition("-")
    is_index = index.isascii() and index.isdigit() and (index == "0" or not index.startswith("0"))
    return (job, index) if job and is_index else ("", "")


def _is_address(host: str) -> bool:
    # A label has neither.
    return "." in host or ":" in host


def _normal(address: str) -> str:
    """Of the many forms of an address the shortest."""
    if ":" not in address:
        return address
    try:
        return str(IPv6Address(address))
    except ValueError:
        return address


# The pods of a job

EVERYTHING = ""
"""The selector of all pods in a namespace."""

# Who labels pods with their job's name: our controller; mpi-operator v2beta1, training-operator; mpi-operator v1;
# JobSet, whose Jobs have other names; Jobs, and up to Kubernetes 1.26.
_JOB_LABELS = (
    names.JOB_LABEL,
    names.KUBEFLOW_JOB_LABEL,
    names.KUBEFLOW_V1_JOB_LABEL,
    "jobset.sigs.k8s.io/jobset-name",
    _JOB,
    _JOB_BEFORE,
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
