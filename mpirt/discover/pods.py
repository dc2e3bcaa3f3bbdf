"""
What a pod object says about its use as a host.

Owns: reading a pod once, into the few values that a decision is made of, and the words for why it isn't Ready. No
I/O. Slots are kept as they are written: whether they can be read matters only where the pod is used.
"""

from __future__ import annotations

from mpirt import names, podobjects
from mpirt.errors import PeerError
from mpirt.objects import rows, table, text
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


class Pod(Value):
    """A pod at one moment."""

    name: str
    labels: Mapping[str, str]
    owner: Owner | None
    generated: bool
    """Whether a controller made it and gave it its name, which shows when that is gone, too."""
    deleting: bool
    draining: bool
    disruption: str
    """Why it is to be disrupted, as EvictionByEvictionAPI; empty when it isn't."""
    ready: bool
    waits_for: str
    """Why it isn't Ready, in a few words."""
    slots: str | None
    """The annotation, as it is written."""
    container: str
    gpus: tuple[tuple[str, str], ...]
    """Names and limits of the container's GPUs, as they are written."""
    created: str
    """When it was made, as it is written: later is greater."""
    ended: bool
    """Whether nothing of it will run any more."""

    @property
    def role(self) -> str:
        """What its labels call it, in lower case: worker, launcher, or nothing."""
        return next((self.labels[label].lower() for label in _ROLE_LABELS if label in self.labels), "")


def read_pod(body: Object, *, container: str = "") -> Pod:
    """
    A pod as the API server has it; `container` names the one that runs the commands. Raises PeerError.

    A switchboard passes on no other fields than those read here: boards/podlist.py names them.
    """
    metadata, spec, status = table(body, "metadata"), table(body, "spec"), table(body, "status")
    name = text(metadata, "name")
    if not name:
        raise PeerError("a pod in the API server's list has no name")
    annotations = table(metadata, "annotations")
    conditions = podobjects.conditions(status)
    ready = podobjects.holds(conditions, "Ready")
    used = _container(rows(spec, "containers"), container or text(annotations, names.DEFAULT_CONTAINER_ANNOTATION))
    return Pod(
        name=name,
        labels={label: found for label, found in table(metadata, "labels").items() if isinstance(found, str)},
        owner=_owner(metadata),
        generated=bool(text(metadata, "generateName")),
        deleting=bool(text(metadata, "deletionTimestamp")),
        draining=annotations.get(names.DRAINING_ANNOTATION, "false") != "false",
        disruption=podobjects.disruption(conditions),
        ready=ready,
        waits_for="" if ready else _waits_for(spec, status, conditions),
        slots=text(annotations, names.SLOTS_ANNOTATION) if names.SLOTS_ANNOTATION in annotations else None,
        container=text(used, "name"),
        gpus=tuple(_gpus(used)),
        created=text(metadata, "creationTimestamp"),
        ended=text(status, "phase") in _ENDED,
    )


def _owner(metadata: Object) -> Owner | None:
    row = podobjects.controller(metadata)
    return Owner(text(row, "kind"), text(row, "name"), text(row, "uid")) if row else None


def _container(containers: list[Object], wanted: str) -> Object:
    """The one by that name, else the first."""
    for row in containers:
        if text(row, "name") == wanted:
            return row
    return containers[0] if containers else {}


def _gpus(container: Object) -> Iterator[tuple[str, str]]:
    for name, limit in table(table(container, "resources"), "limits").items():
        if name.endswith(podobjects.GPU_SUFFIX):
            yield name, str(limit)


def _waits_for(spec: Object, status: Object, conditions: Mapping[str, Object]) -> str:
    phase = text(status, "phase") or "no phase yet"
    scheduled = conditions.get("PodScheduled", {})
    if text(scheduled, "status") == "False":
        return text(scheduled, "reason") or "not scheduled"
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
