"""
What a pod object says about the life of a command in it.

Owns: reading a pod once, into the few values that evidence is made of, and the choice of a container. No I/O.

A field that isn't there, or isn't what it should be, reads as nothing: no evidence is better than a running job
ended because of a strange object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpirt import podobjects
from mpirt.errors import ConfigError
from mpirt.names import DEFAULT_CONTAINER_ANNOTATION
from mpirt.objects import rows, table, text
from mpirt.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME_ONE = "name one by --container or MPIRT_CONTAINER"


class Container(Value):
    """One container's state."""

    identity: str
    """The runtime's id: another one is another container, with none of our processes."""
    restarts: int
    running: bool
    waiting: str
    """Why it doesn't run yet, as ImagePullBackOff."""
    ended: str
    """Why it has ended, or why the one before it has, as OOMKilled; with its code."""
    has_ended: bool
    begun: str = ""
    """When it was started, as Kubernetes writes times; empty if it does not run."""


class Pod(Value):
    """A pod at one moment."""

    uid: str
    node: str
    phase: str
    reason: str
    """Why the pod as a whole has failed, as Evicted."""
    is_ready: bool
    """Whether it is Ready, and not about to go."""
    may_be_entered_soon: bool
    """Whether its node starts it, and it is Ready as soon as its only container runs."""
    unscheduled: str
    """Why there is no node for it; empty if there is one, or nothing is said."""
    deleting: bool
    grace: float | None
    """Seconds from its deletion until its node kills what is left of it; None where it does not say."""
    restarts: bool
    """Whether its containers are started again whenever they end: it never ends by itself."""
    disruption: str
    """Why it is to be disrupted, as DeletionByTaintManager; empty when it isn't."""
    cut_off: bool
    """Not ready though all its containers are: what is left to say of a pod whose node is not heard of."""
    containers: Mapping[str, Container]
    """In the order of the pod's spec."""
    default_container: str

    @property
    def has_ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    def container(self, name: str) -> Container:
        """A container by its name, or the first."""
        return self.containers.get(name or next(iter(self.containers), ""), _UNKNOWN)

    @property
    def waits_for(self) -> str:
        """Why it isn't running, or not Ready, in a few words."""
        reasons = [one.waiting for one in self.containers.values() if one.waiting]
        why = reasons[0] if reasons else self.unscheduled
        state = "being deleted" if self.deleting else self.phase or "no phase"
        return f"{state}: {why}" if why else state


def read_pod(body: Mapping[str, object]) -> Pod:
    """A pod as the API server has it."""
    metadata, spec, status = table(body, "metadata"), table(body, "spec"), table(body, "status")
    conditions = podobjects.conditions(status)
    is_going = bool(text(metadata, "deletionTimestamp"))
    states = {text(row, "name"): _container(row) for row in rows(status, "containerStatuses")}
    names = [text(row, "name") for row in rows(spec, "containers")] or list(states)
    return Pod(
        uid=text(metadata, "uid"),
        node=text(spec, "nodeName"),
        phase=text(status, "phase"),
        reason=text(status, "reason"),
        may_be_entered_soon=not is_going and _is_started_plainly(spec, status),
        is_ready=podobjects.holds(conditions, "Ready") and not is_going,
        unscheduled=text(podobjects.unscheduled(conditions), "message"),
        deleting=is_going,
        grace=_seconds(metadata.get("deletionGracePeriodSeconds")),
        restarts=text(spec, "restartPolicy") == "Always",
        disruption=podobjects.disruption(conditions),
        cut_off=podobjects.is_cut_off(conditions, spec),
        containers={name: states.get(name, _UNKNOWN) for name in names},
        default_container=podobjects.annotation(metadata, DEFAULT_CONTAINER_ANNOTATION),
    )


def _is_started_plainly(spec: Mapping[str, object], status: Mapping[str, object]) -> bool:
    """Whether its node starts it, with one container and nothing that keeps it from being Ready."""
    containers = rows(spec, "containers")
    if text(status, "phase") != "Pending" or not text(spec, "nodeName") or len(containers) != 1:
        return False
    [main] = containers
    holds_up = any(main.get(field) for field in ("readinessProbe", "startupProbe", "lifecycle"))
    return not (holds_up or rows(spec, "initContainers") or rows(spec, "readinessGates"))


def choose_container(pod: Pod, wanted: str) -> tuple[str, str]:
    """The container to enter, and a remark about the choice; empty if there was none."""
    names = list(pod.containers)
    if wanted:
        if wanted not in names:
            raise ConfigError(
                f"no container {wanted} (--container, MPIRT_CONTAINER): there is only {', '.join(names)}"
            )
        return wanted, ""
    if pod.default_container in names:
        return pod.default_container, ""
    if not names:
        return "", ""
    remark = (
        f"of the containers {', '.join(names)} the first is used; --container or MPIRT_CONTAINER chooses another"
    )
    return names[0], remark if len(names) > 1 else ""


_UNKNOWN = Container("", 0, running=False, waiting="", ended="", has_ended=False)


def _seconds(given: object) -> int | None:
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None


def _container(row: Mapping[str, object]) -> Container:
    state = table(row, "state")
    terminated = table(state, "terminated")
    last = terminated or table(table(row, "lastState"), "terminated")
    restarts = row.get("restartCount")
    return Container(
        identity=text(row, "containerID"),
        restarts=restarts if isinstance(restarts, int) else 0,
        running=bool(table(state, "running")),
        waiting=text(table(state, "waiting"), "reason"),
        ended=_ended(last),
        has_ended=bool(terminated),
        begun=text(table(state, "running"), "startedAt"),
    )


def _ended(terminated: Mapping[str, object]) -> str:
    code = terminated.get("exitCode")
    words = (text(terminated, "reason"), f"code {code}" if isinstance(code, int) else "")
    return ", ".join(word for word in words if word)
