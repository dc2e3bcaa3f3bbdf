"""
From pods to hosts.

Owns: the decision which pods are hosts, in which order, with how many slots, and why each of the others is not. No
I/O, no clock: what it is told is all it knows.
"""

from __future__ import annotations

from mpirt import names
from mpirt.errors import NotReady, SpecError
from mpirt.hosts import Host, parse_count
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpirt.discover.pods import Pod


# An annotation may hold 256 KB.
_SHOWN = 40


class Criteria(Value):
    """What a pod must be to be a host, and what is known already."""

    slots: int | None = None
    """The same for every host; None leaves it to the pods."""
    revision: str = ""
    """The controller revision that pods must have; empty for any."""
    own_pod: str = ""
    """The pod that the launcher runs in; it is a host only if it is called a worker."""


class LeftOut(Value):
    """A pod that is no host, and why."""

    pod: str
    reason: str

    def __str__(self) -> str:
        return f"{self.pod}: {self.reason}"


class Found(Value):
    """The hosts, in ordinal order, and the workers that are none at this moment."""

    hosts: tuple[Host, ...]
    left_out: tuple[LeftOut, ...]


def discover(pods: Iterable[Pod], criteria: Criteria, *, asked: str) -> Found:
    """
    Decide. `asked` says how the pods were chosen, for messages.

    Raises SpecError where the pods are those of two jobs, or the slots of a host can't be read.
    """
    workers = sorted((pod for pod in pods if _may_be_worker(pod, criteria)), key=ordinal)
    _check_one_job(workers, asked)
    judged = [(pod, objection(pod, criteria)) for pod in workers]
    return Found(
        hosts=tuple(Host(pod.name, slots_of(pod, criteria)) for pod, reason in judged if not reason),
        left_out=tuple(LeftOut(pod.name, reason) for pod, reason in judged if reason),
    )


def check_older_have_ended(pods: Iterable[Pod], own: str) -> None:
    """
    Raises NotReady while a pod that is older than our own has not ended.

    Of two that wait for each other one would wait for ever: the younger one waits. A pod that no controller has
    made is not waited for: it is a copy, made for debugging, that has kept its labels.
    """
    made = [pod for pod in pods if pod.owner is not None or pod.generated or pod.name == own]
    waited = [pod for pod in made if not pod.ended]
    ages = {pod.name: (pod.created, pod.name) for pod in waited}
    older = [name for name, age in ages.items() if own in ages and age < ages[own]]
    if older:
        raise NotReady(f"pod {older[0]} came before this one and has not ended yet")


def ordinal(pod: Pod) -> tuple[str, int, str]:
    """The order of hosts: by the number at the end of the name, so that w-10 comes after w-2."""
    stem = pod.name.rstrip("0123456789")
    number = pod.name[len(stem) :]
    return stem, int(number or -1), pod.name


def objection(pod: Pod, criteria: Criteria) -> str:
    """Why a worker is no host now; nothing if it is one."""
    if pod.deleting:
        return "being deleted"
    if not pod.ready:
        return pod.waits_for
    if pod.draining:
        return f"draining ({names.DRAINING_ANNOTATION})"
    if pod.disruption:
        return f"about to be disrupted ({pod.disruption})"
    revision = pod.labels.get(names.REVISION_LABEL, "")
    if criteria.revision and revision != criteria.revision:
        return f"of revision {revision or 'none'}"
    return ""


def slots_of(pod: Pod, criteria: Criteria) -> int:
    """How many processes may run there. Raises SpecError that names the pod and the field."""
    if criteria.slots is not None:
        return criteria.slots
    if pod.slots is not None:
        return _number(f"pod {pod.name}: annotation {names.SLOTS_ANNOTATION}", pod.slots, least=1)
    place = f"pod {pod.name}: container {pod.container}: limit of"
    return sum(_number(f"{place} {name}", limit, least=0) for name, limit in pod.gpus) or 1


def _number(field: str, text: str, *, least: int) -> int:
    number = parse_count(field, text[:_SHOWN])
    if number < least:
        raise SpecError(field, f"must be at least {least}, got {number}")
    return number


def _may_be_worker(pod: Pod, criteria: Criteria) -> bool:
    return pod.role == names.WORKER or (not pod.role and pod.name != criteria.own_pod)


def _check_one_job(workers: Sequence[Pod], asked: str) -> None:
    """
    Pods of one job have one owner: the StatefulSet, or the job object itself. Pods without one belong together.

    Those that are being deleted don't count: they may be what is left of a job that had the same name.
    """
    first: Pod | None = None
    for pod in workers:
        if pod.deleting:
            continue
        if first is None:
            first = pod
        elif pod.owner != first.owner:
            raise SpecError(
                asked, f"two jobs match: {_with_owner(first)} and {_with_owner(pod)}; name one with --statefulset"
                " or a narrower --selector",
            )  # fmt: skip


def _with_owner(pod: Pod) -> str:
    return f"{pod.owner or 'nobody'}'s pod {pod.name}"
