"""
Sentences about pods, for people.

Owns: why a pod isn't Ready, how it died, how a launcher ended. They name the cause, and stay the same while it
does: what a node says in turns (ErrImagePull, ImagePullBackOff) is said in one way, for each change is a write.
"""

from __future__ import annotations

from datetime import UTC, datetime

from mpirt.controller.observed.pods import EVICTED, Container, Ended, Pod

# What is no trouble yet.
_ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
_IMAGE_PULL = frozenset({"ErrImagePull", "ImagePullBackOff"})
SHOWN = 3
"""So many pods are told of, of the others how many they are."""
LAUNCHER_POD = "launcher pod "
"""How a sentence about a launcher begins."""

# What a shell, mpirun and a container runtime say of a process that a signal has ended.
_SIGNALS = {129: "SIGHUP", 130: "SIGINT", 134: "SIGABRT", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}
# By this mpirt-rsh begins its lines; among a launcher's it is the one that names a cause.
_AGENT = "mpirt-rsh: "
_ANY_TIME = datetime.max.replace(tzinfo=UTC)


def trouble(pod: Pod) -> str:
    """Why the pod can't be used; nothing if it can."""
    if pod.is_usable:
        return ""
    if found := _pod_trouble(pod):
        return f"{pod.name} {found}"
    found = next((words for one in pod.containers if (words := _container_trouble(one))), "")
    if found:
        return f"{pod.name}: {found}"
    return f"{pod.name} is starting on node {pod.node}" if pod.node else f"{pod.name} waits for a node"


def _pod_trouble(pod: Pod) -> str:
    if pod.deleted is not None:
        return f"is being deleted{f' on node {pod.node}' if pod.node else ''}"
    if pod.phase == "Failed" or pod.reason == EVICTED:
        return _failed(pod)
    if pod.cut_off is not None:
        return f"is on node {pod.node}, which is not heard of"
    return f"is not scheduled: {pod.unscheduled}" if pod.unscheduled else ""


def death(pod: Pod, since: datetime) -> str:
    """How the pod, or a container of it, died since then; nothing if none did."""
    if pod.gone is not None and pod.gone < since:
        return ""
    if pod.phase == "Failed" or pod.reason == EVICTED:
        return f"{pod.name} {_failed(pod)}"
    if pod.cut_off is not None:
        return f"{pod.name} was lost with its node {pod.node}"
    if pod.was_deleted:
        return f"{pod.name} {_deleted(pod)}"
    return container_death(pod, since)


def container_death(pod: Pod, since: datetime, until: datetime = _ANY_TIME) -> str:
    """How a container of the pod died between two moments; nothing if none did."""
    for one in pod.containers:
        for end in (one.ended, one.before):
            if end is not None and end.at is not None and since <= end.at <= until:
                return f"{pod.name}: container {one.name} {_ended(end)}"
    return ""


def launcher_end(pod: Pod) -> str:
    """How a launcher's pod ended, with the last that it said, or is ending."""
    if pod.reason:
        return f"{LAUNCHER_POD}{pod.name} {_failed(pod)}"
    if pod.cut_off is not None and not pod.is_over:
        return f"{LAUNCHER_POD}{pod.name} was lost with its node {pod.node}"
    if pod.deleted is not None and not pod.is_over:
        return f"{LAUNCHER_POD}{pod.name} {_deleted(pod)}"
    end = next((one.ended for one in pod.containers if one.ended is not None and one.ended.code != 0), None)
    if end is None:
        return f"{LAUNCHER_POD}{pod.name} failed"
    words = _cause_first(end.message)
    return f"{LAUNCHER_POD}{pod.name} {_ended(end)}{f': {words}' if words else ''}"


def listed(sentences: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = len(sentences) - SHOWN
    return "; ".join([*sentences[:SHOWN], *([f"and {more} more"] if more > 0 else [])])


def _deleted(pod: Pod) -> str:
    return f"was deleted{f' ({pod.disruption})' if pod.disruption else ''}"


def _cause_first(lines: str) -> str:
    """What mpirt-rsh said, and then the rest: the job's own words, and what launchers make of it."""
    return "\n".join(sorted(lines.splitlines(), key=lambda line: not line.startswith(_AGENT)))


def _failed(pod: Pod) -> str:
    words = "was evicted" if pod.reason == EVICTED else f"failed{f' ({pod.reason})' if pod.reason else ''}"
    return f"{words}{f': {pod.message}' if pod.message else ''}"


def _ended(end: Ended) -> str:
    # Kubernetes calls everything that isn't 0 an Error: the code says it.
    reason = end.reason if end.reason not in ("", "Error") else _SIGNALS.get(end.code, "")
    return f"ended with code {end.code}{f' ({reason})' if reason else ''}"


def _container_trouble(one: Container) -> str:
    found = _why_waiting(one) or _why_not_ready(one)
    kind = "init container" if one.init else "container"
    return f"{kind} {one.name}{found}" if found else ""


def _why_waiting(one: Container) -> str:
    if one.waiting in _IMAGE_PULL:
        return f": ImagePullBackOff: image {one.image} can't be pulled"
    if one.waiting == "CrashLoopBackOff":
        return f": CrashLoopBackOff{f': {_ended(one.before)}' if one.before else ''}"
    told = f": {one.told}" if one.told else ""
    return "" if one.waiting in _ON_ITS_WAY else f": {one.waiting}{told}"


def _why_not_ready(one: Container) -> str:
    if one.init:
        return " runs" if one.running else ""
    if one.ended is not None:
        return f" {_ended(one.ended)}"
    return " runs but is not Ready: its readiness probe does not succeed" if one.running and not one.ready else ""
