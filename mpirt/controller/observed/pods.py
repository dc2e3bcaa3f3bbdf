"""
The state of a pod, read from its object and from the events about it.

Owns: the values, and reading a pod into them once. The sentences about it are in messages/sentences.py. Knows
nothing of jobs but their pods' names.

Two kinds of events report what no object shows. FailedCreate: a quota, a limit range or an admission rule kept a
StatefulSet or Job from creating a pod. Evicted: a kubelet evicted a pod; if its containers end on TERM, newer
kubelets overwrite the pod's own reason and message with how these ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from mpirt import names, podobjects
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import HOSTS_ANNOTATION, TEMPLATE_ANNOTATION, job_of
from mpirt.controller.model.reading import Body, duration, moment, number, rows, table, text
from mpirt.controller.model.spec import JobKey

# Where the cache says that a pod has ended because it was deleted.
_ENDED_BY_DELETION = "endedByDeletion"
_OVER = ("Succeeded", "Failed")

EVICTED = "Evicted"
"""The reason of a pod that its node has evicted."""
# The reasons of a container that was lost by a restart of its node, or of the runtime there: containerd's (with
# code 255), and the kubelet's for one that the runtime does not know (with 137).
_LOST = frozenset({"Unknown", "ContainerStatusUnknown"})


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container ended."""

    code: int
    reason: str
    message: str
    """Its termination message: with the policy that launchers get, the last lines of its log."""
    at: datetime | None

    @property
    def is_lost(self) -> bool:
        """Whether its node has lost it, so that it is unknown how it ended; the code means nothing then."""
        return self.reason in _LOST


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod, init containers included."""

    name: str
    identity: str
    """Its runtime's id, shortened: one that is started again has another. Empty while there is none."""
    init: bool
    sidecar: bool
    """Whether it is an init container that runs beside the others."""
    ready: bool
    running: bool
    waiting: str
    """Why it doesn't run yet, such as ImagePullBackOff."""
    message: str
    """The node's message about that."""
    image: str
    """What it runs; while the node's message says so, an image that it mounts."""
    started: datetime | None
    ended: Ended | None
    before: Ended | None
    """How its previous run ended."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod at one moment."""

    name: str
    uid: str
    owner: str
    """The uid in its controller reference."""
    owner_name: str
    """Kind and name in that reference; empty if it has none."""
    owners: frozenset[str]
    """The uids in all of its owner references."""
    role: str
    index: str
    """The label replica-index, which shows its rank to other programs; empty without the label."""
    revision: str
    held: str
    """The annotation mpirt.dev/draining: why it is no host now; empty if it may be one."""
    held_since: datetime | None
    """Since when, if the controller has written it."""
    template: str
    """The digest of the template that it was created from; empty if unknown."""
    hosts: str
    """The digest of the list of hosts that a launcher has read last; empty if unknown."""
    phase: str
    reason: str
    """Why the pod as a whole has failed, such as Evicted."""
    message: str
    node: str
    created: datetime | None
    deleted: datetime | None
    """The deadline for its processes to end, if it is being deleted."""
    asked_to_end: datetime | None
    """When its deletion was requested."""
    ended_by_deletion: bool
    """Whether it is over, and was not yet when its deletion was known."""
    forced: bool
    """Whether its deletion does not wait for its node (grace 0). Then only a finalizer can still keep it."""
    gone: datetime | None
    """When it was seen to be gone; None while it exists."""
    ready: bool
    unscheduled: str
    """Why it is not scheduled."""
    cut_off: datetime | None
    """Since when its node has been unreachable."""
    disruption: str
    """Why it is about to be disrupted, such as PreemptionByScheduler."""
    containers: tuple[Container, ...]

    @property
    def is_over(self) -> bool:
        """Whether it has ended: its containers will not run any more."""
        return self.phase in _OVER

    @property
    def started(self) -> datetime | None:
        """When the last of its containers was started, init containers aside."""
        return max((one.started for one in self.containers if not one.init and one.started), default=None)

    @property
    def ended(self) -> datetime | None:
        """When the last of its containers ended, of those that have."""
        return max((one.ended.at for one in self.containers if one.ended and one.ended.at), default=None)

    @property
    def was_deleted(self) -> bool:
        """Whether it is being deleted, or gone."""
        return self.deleted is not None or self.gone is not None

    def main_first(self, main: str) -> list[Container]:
        """Its containers, the one of that name before the others."""
        return sorted(self.containers, key=lambda one: one.name != main)

    def decisive(self, main: str) -> list[Container]:
        """Its container of that name; if it has none, all but the init containers."""
        own = [one for one in self.containers if not one.init]
        return [one for one in own if one.name == main] or own

    @property
    def is_usable(self) -> bool:
        """Whether commands may be started in it."""
        return self.ready and self.deleted is None


def read_pod(body: Body, *, evicted: Mapping[str, str] | None = None, gone: datetime | None = None) -> Pod:
    """Read a pod object, the last one if the pod is `gone`; `evicted` says why nodes evicted pods, by uid."""
    metadata, spec, status = (body.get(part, {}) for part in ("metadata", "spec", "status"))
    conditions = podobjects.conditions(status)
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    owner, owners = podobjects.controller(metadata), metadata.get("ownerReferences", ())
    uid, reason, message = metadata.get("uid", ""), status.get("reason", ""), status.get("message", "")
    if not reason and evicted is not None and uid in evicted:
        reason, message = EVICTED, evicted[uid]
    return Pod(
        name=metadata.get("name", ""),
        uid=uid,
        owner=owner.get("uid", ""),
        owner_name=kind_and_name(owner),
        owners=frozenset(row["uid"] for row in owners),
        role=labels.get(names.KUBEFLOW_ROLE_LABEL, ""),
        index=labels.get(names.KUBEFLOW_INDEX_LABEL, ""),
        revision=labels.get(names.REVISION_LABEL, ""),
        held=annotations.get(names.DRAINING_ANNOTATION, ""),
        held_since=moment(annotations, names.DRAINING_SINCE_ANNOTATION),
        template=annotations.get(TEMPLATE_ANNOTATION, ""),
        hosts=annotations.get(HOSTS_ANNOTATION, ""),
        phase=_phase(metadata, spec, status),
        reason=reason,
        # Some messages of Kubernetes end with a full stop, most don't; our sentences continue after it.
        message=message.rstrip(". \n"),
        node=spec.get("nodeName", ""),
        created=moment(metadata, "creationTimestamp"),
        deleted=(deleted := moment(metadata, "deletionTimestamp")),
        asked_to_end=deleted and deleted - duration(metadata.get("deletionGracePeriodSeconds", 0)),
        ended_by_deletion=body.get(_ENDED_BY_DELETION) is True,
        forced=metadata.get("deletionGracePeriodSeconds") == 0,
        gone=gone,
        ready=podobjects.holds(conditions, "Ready"),
        unscheduled=_unscheduled(podobjects.unscheduled(conditions)),
        cut_off=_cut_off(conditions, spec),
        disruption=podobjects.disruption(conditions),
        containers=tuple(_containers(status, spec)),
    )


def with_cause(before: Body, now: Body) -> Body:
    """
    Return a pod object with a mark if its deletion came before its end, by its object as it was known before.

    The object itself doesn't show that, and the clocks of a node and of the API server tell no order.
    """
    was_over = before.get("status", {}).get("phase") in _OVER
    was_going = "deletionTimestamp" in before["metadata"] and not was_over
    return {**now, _ENDED_BY_DELETION: True} if was_going or before.get(_ENDED_BY_DELETION) else now


def kind_and_name(reference: Body) -> str:
    """Return the kind and name in a reference, for messages; empty if it refers to nothing."""
    return " ".join(filter(None, (reference.get("kind", ""), reference.get("name", ""))))


def _phase(metadata: Body, spec: Body, status: Body) -> str:
    """
    Return the pod's phase: also the last one, as soon as it is certain.

    A kubelet says so a second after the containers have ended, when it has cleaned up.
    """
    found = text(status, "phase")
    has_own = any("restartPolicy" in row for row in rows(spec, "containers"))
    goes_on = spec.get("restartPolicy") != "Never" or has_own or "deletionTimestamp" in metadata
    if found != "Running" or goes_on or spec.get("initContainers"):
        return found
    ends = [table(row, "state", "terminated") for row in rows(status, "containerStatuses")]
    if not ends or not all(ends):
        return found
    return "Failed" if any(number(end, "exitCode") for end in ends) else "Succeeded"


def _unscheduled(condition: Body) -> str:
    return f"{text(condition, 'reason')}: {text(condition, 'message')}" if condition else ""


def _cut_off(conditions: Mapping[str, Body], spec: Body) -> datetime | None:
    """Return since when the pod's node is lost; None if it is not."""
    is_lost = podobjects.is_cut_off(conditions, spec)
    return moment(conditions["Ready"], "lastTransitionTime") if is_lost else None


def _containers(status: Body, spec: Body) -> Iterator[Container]:
    # Init containers that continue to run beside the others.
    sidecars = {row["name"] for row in spec.get("initContainers", ()) if row.get("restartPolicy") == "Always"}
    for row in status.get("initContainerStatuses", ()):
        yield _container(row, spec, init=True, sidecar=row["name"] in sidecars)
    for row in status.get("containerStatuses", ()):
        yield _container(row, spec, init=False, sidecar=False)


def _container(row: Body, spec: Body, *, init: bool, sidecar: bool) -> Container:
    state = row.get("state", {})
    waiting, terminated = state.get("waiting", {}), state.get("terminated", {})
    return Container(
        name=row.get("name", ""),
        identity=podobjects.container_identity(row),
        init=init,
        sidecar=sidecar,
        ready=row.get("ready") is True,
        running="running" in state,
        waiting=waiting.get("reason", ""),
        message=(message := waiting.get("message", "")),
        image=next((name for name in image_volumes(spec) if name in message), row.get("image", "")),
        started=moment(state.get("running", {}) or terminated, "startedAt"),
        ended=_ended(terminated),
        before=_ended(row.get("lastState", {}).get("terminated", {})),
    )


def image_volumes(spec: Body) -> list[str]:
    """Return the images that a pod mounts."""
    return [name for row in rows(spec, "volumes") if (name := text(table(row, "image"), "reference"))]


def _ended(row: Body) -> Ended | None:
    if not row:
        return None
    return Ended(
        code=row.get("exitCode", 0),
        reason=row.get("reason", ""),
        message=row.get("message", "").strip(),
        at=moment(row, "finishedAt"),
    )


# The field selectors of the watches: they match only a few of all the events in a cluster.
FAILED_CREATE_EVENTS = "reason=FailedCreate"
EVICTION_EVENTS = "reason=Evicted"

# The beginnings of their messages: the API server's answer follows, which begins with the pod.
_BEGINNINGS = ("failed error: ", "Error creating: ")
# The API server answers this while it comes back. The request is retried at once, so it is no obstacle.
_PASSES = "could not be completed at this time"
_NAME = re.compile(r'^pods "[^"]*" (is )?')


@dataclass(frozen=True, slots=True)
class FailedCreate:
    """A pod that could not be created."""

    owner: str
    """The uid of the object that tried to create it."""
    message: str
    at: datetime | None
    """When that was last tried."""


def involved(body: Body) -> tuple[str, str, str]:
    """Return kind, namespace and name of the object that an event concerns."""
    about = table(body, "involvedObject")
    return text(about, "kind"), text(about, "namespace"), text(about, "name")


def event_job(body: Body) -> JobKey | None:
    """
    Return the job that an event concerns, by the name of the involved object, which need not exist.

    The name does not tell the job's kind: it counts as an MPIJob.
    """
    kind, namespace, name = involved(body)
    job = job_of(kind, name)
    return JobKey(kinds.MPI_JOB, namespace, job) if job else None


def read_failed_create(body: Body) -> FailedCreate:
    """Read a FailedCreate event as the API server has it."""
    at = moment(body, "lastTimestamp") or moment(body, "eventTime")
    return FailedCreate(text(table(body, "involvedObject"), "uid"), text(body, "message"), at)


def evictions(events: Iterable[Body]) -> Mapping[str, str]:
    """Return why nodes have evicted pods, by the pods' uids."""
    return {text(table(one, "involvedObject"), "uid"): text(one, "message") for one in events}


def why_not_created(
    failed_creates: Iterable[FailedCreate], owner: str, made: Iterable[Pod], name: str = ""
) -> str:
    """
    Return why the object with the uid `owner` can't create a pod, or the pod that `name` names; empty if unknown.

    `made` are the pods that it has created: a failure before the newest of them no longer counts.
    """
    failed = [
        (one.at, one.message) for one in failed_creates if one.owner == owner and one.at and name in one.message
    ]
    at, message = max((each for each in failed if _PASSES not in each[1]), default=(None, ""))
    if at is None or any(pod.created is not None and at < pod.created for pod in made):
        return ""
    return f"can't be created: {_answer(message)}"


def _answer(message: str) -> str:
    """Return the API server's answer, without the pod's name, which for a Job is another one each time."""
    words = next((rest for one in _BEGINNINGS if (rest := message.partition(one)[2])), message)
    return _NAME.sub("", words).rstrip(". \n")
