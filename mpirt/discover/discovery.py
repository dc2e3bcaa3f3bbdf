"""
From pod objects to hosts, without I/O.

Owns: reading a pod once, into the few values that a decision is made of; which pods are hosts, in which order,
with how many slots; and why each of the others is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mpirt import names, podobjects
from mpirt.errors import PeerError, SpecError
from mpirt.hosts import Host, parse_count
from mpirt.objects import rows, table, text
from mpirt.values import Value

Object = Mapping[str, object]

_ROLE_LABELS = (
    names.ROLE_LABEL,
    names.KUBEFLOW_ROLE_LABEL,
    names.KUBEFLOW_REPLICA_LABEL,
    names.KUBEFLOW_V1_ROLE_LABEL,
)
# What every container says before it runs, and so nothing about why it doesn't.
_ON_ITS_WAY = ("ContainerCreating", "PodInitializing")
_ENDED = ("Succeeded", "Failed")


class Owner(Value):
    """The one object that made a pod and looks after it."""

    kind: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Container(Value):
    """What matters of a container."""

    name: str
    gpus: tuple[tuple[str, str], ...]
    """Names and limits of its GPUs, as they are written."""


class Pod(Value):
    """A pod at one moment. Slots are kept as text: they need be valid only where the pod is used."""

    name: str
    labels: Mapping[str, str]
    owner: Owner | None
    deleting: bool
    draining: bool
    disruption: str
    """Why it is to be disrupted, as EvictionByEvictionAPI; empty when it isn't."""
    ready: bool
    waits_for: str
    """Why it isn't Ready, in a few words."""
    slots: str | None
    """The annotation's text."""
    containers: tuple[Container, ...]
    main_container: str
    """The one that `kubectl exec` takes, where an annotation names it."""
    created: str
    """When it was made, as the API server writes it: later is greater."""
    ended: bool
    """Whether nothing of it will run any more."""

    @property
    def role(self) -> str:
        """What its labels call it, in lower case: worker, launcher, or nothing."""
        return next((self.labels[label].lower() for label in _ROLE_LABELS if label in self.labels), "")

    def container(self, wanted: str = "") -> Container:
        """The container of that name, else the main one, else the first."""
        by_name = {each.name: each for each in reversed(self.containers)}
        first = self.containers[0] if self.containers else Container("", ())
        return by_name.get(wanted or self.main_container, first)


def read_pod(body: Object) -> Pod:
    """A pod as the API server has it. Raises PeerError."""
    metadata, spec, status = table(body, "metadata"), table(body, "spec"), table(body, "status")
    name = text(metadata, "name")
    if not name:
        raise PeerError("a pod in the API server's list has no name")
    annotations = table(metadata, "annotations")
    conditions = podobjects.conditions(status)
    ready = podobjects.holds(conditions, "Ready")
    return Pod(
        name=name,
        labels={label: found for label, found in table(metadata, "labels").items() if isinstance(found, str)},
        owner=_owner(metadata),
        deleting=bool(text(metadata, "deletionTimestamp")),
        draining=annotations.get(names.DRAINING_ANNOTATION, "false") != "false",
        disruption=podobjects.disruption(conditions),
        ready=ready,
        waits_for="" if ready else _waits_for(spec, status, conditions),
        slots=text(annotations, names.SLOTS_ANNOTATION) if names.SLOTS_ANNOTATION in annotations else None,
        containers=tuple(Container(text(row, "name"), tuple(_gpus(row))) for row in rows(spec, "containers")),
        main_container=text(annotations, names.DEFAULT_CONTAINER_ANNOTATION),
        created=text(metadata, "creationTimestamp"),
        ended=text(status, "phase") in _ENDED,
    )


def _owner(metadata: Object) -> Owner | None:
    row = podobjects.controller(metadata)
    return Owner(text(row, "kind"), text(row, "name"), text(row, "uid")) if row else None


def _gpus(container: Object) -> Iterator[tuple[str, str]]:
    for name, limit in table(table(container, "resources"), "limits").items():
        if name.endswith(podobjects.GPU_SUFFIX):
            yield name, str(limit)


def _waits_for(spec: Object, status: Object, conditions: Mapping[str, Object]) -> str:
    phase = text(status, "phase") or "no phase yet"
    if unscheduled := podobjects.unscheduled(conditions):
        return text(unscheduled, "reason") or "not scheduled"
    if phase in _ENDED:
        reason = text(status, "reason")
        return f"{phase}: {reason}" if reason else phase
    containers = [*rows(status, "initContainerStatuses"), *rows(status, "containerStatuses")]
    reasons = [reason for row in containers if (reason := _reason(row))]
    if reasons:
        return next((reason for reason in reasons if reason not in _ON_ITS_WAY), reasons[0])
    if phase != "Running":
        return phase
    return "its node is not heard of" if podobjects.is_cut_off(conditions, spec) else "not Ready"


def _reason(container: Object) -> str:
    state = table(container, "state")
    return text(table(state, "waiting"), "reason") or (
        "" if container.get("ready") is True else text(table(state, "terminated"), "reason")
    )


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
    container: str = ""
    """The container that runs the commands, where the user names it."""


class LeftOut(Value):
    """A worker that is not a host, and why."""

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
    used = pod.container(criteria.container)
    place = f"pod {pod.name}: container {used.name}: limit of"
    return sum(_number(f"{place} {name}", limit, least=0) for name, limit in used.gpus) or 1


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
    return f"pod {pod.name} of {pod.owner or 'no owner'}"
