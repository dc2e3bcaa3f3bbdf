"""
Which pod a host name or an address means, where no pod has that name.

Owns: what to ask for, and the choice among the pods that come back. The list itself is handed in. Imported only
when the API server knows no pod of the name that was given, or when that is an address.

Pods of a StatefulSet are called by their host names. Those of an Indexed Job are not: the pod of index 3 has the
host name JOB-3 and a name like JOB-3-x7k2p. So have those of JobSets, TrainJobs and Flux, which make such Jobs.
Kubernetes selects by label, but by no host name, so what no label leads to is looked for among all pods that live.
"""

from __future__ import annotations

from ipaddress import IPv6Address
from typing import TYPE_CHECKING

from mpirt.errors import MpirtError, NoPod
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.answers import Forbidden, NotFound
from mpirt.objects import rows, table, text
from mpirt.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpirt.kubeapi.access.steps import Steps

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
