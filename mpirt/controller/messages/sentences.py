"""
Sentences about pods, for people.

Owns: why a pod is not Ready, how it died, how a launcher ended. A sentence names the cause, and stays the same as
long as the cause does: alternating reasons (ErrImagePull, ImagePullBackOff) get one wording, because each change
is a write.
"""

from __future__ import annotations

from mpirt.controller.model.attempts import How, PodEnd
from mpirt.controller.observed.deaths import failure
from mpirt.controller.observed.pods import EVICTED, Container, Pod

# Reasons for waiting that are no trouble.
_ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
_IMAGE_PULL = frozenset({"ErrImagePull", "ImagePullBackOff"})
SHOWN = 3
"""List at most this many pods; count the rest."""
LAUNCHER_POD = "launcher pod "
"""How a sentence about a launcher begins."""

# The exit codes by which shells, mpirun and container runtimes report that a signal has ended a process.
_SIGNALS = {129: "SIGHUP", 130: "SIGINT", 134: "SIGABRT", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}


def trouble(pod: Pod, main: str = "") -> str:
    """Return why the pod can't be used; empty if it can. Of similar troubles, that of `main` comes first."""
    if pod.is_usable:
        return ""
    if found := _pod_trouble(pod):
        return f"{pod.name} {found}"
    found = next((words for look in _LOOKS for one in pod.main_first(main) if (words := look(one))), "")
    if found:
        return f"{pod.name}: {found}"
    return f"{pod.name} is starting on node {pod.node}" if pod.node else f"{pod.name} is waiting for a node"


def _pod_trouble(pod: Pod) -> str:
    if pod.deleted is not None:
        return f"is being deleted{f' on node {pod.node}' if pod.node else ''}"
    if pod.phase == "Failed" or pod.reason == EVICTED:
        return _went(failure(pod))
    if pod.cut_off is not None:
        return f"is on node {pod.node}, which is unreachable"
    return f"is not scheduled: {pod.unscheduled}" if pod.unscheduled else ""


def pod_end(end: PodEnd, *, name_container: bool = True) -> str:
    """Return how a pod ended."""
    match end.how:
        case How.EXITED:
            container = f": container {end.container}" if name_container and end.container else ""
            return f"{end.pod}{container} {_ended(end.code or 0, end.reason)}"
        case _:
            return f"{end.pod} {_went(end)}"


def listed(sentences: list[str], others: int = 0) -> str:
    """Join the first SHOWN sentences, and count the rest together with `others`."""
    more = max(len(sentences) - SHOWN, 0) + others
    return "; ".join([*sentences[:SHOWN], *([f"and {more} more"] if more > 0 else [])])


def _went(end: PodEnd) -> str:
    reason, message = f" ({end.reason})" if end.reason else "", f": {end.message}" if end.message else ""
    match end.how:
        case How.EVICTED:
            return f"was evicted{message}"
        case How.FAILED:
            return f"failed{reason}{message}"
        case How.NODE_LOST:
            return f"was lost with its node {end.node}{reason}"
        case How.DELETED:
            return f"was deleted{reason}"
        case How.CUT_OFF:
            return f"was lost to mpirt-rsh (code {end.code})"
        case _:
            return "is gone"


def _ended(code: int, reason: str) -> str:
    # Kubernetes' reason for every code but 0 is Error, which adds nothing to the code.
    words = reason if reason not in ("", "Error") else _SIGNALS.get(code, "")
    return f"ended with code {code}{f' ({words})' if words else ''}"


def _waits(one: Container) -> str:
    return _named(one, _why_waiting(one))


def _is_not_ready(one: Container) -> str:
    return _named(one, _why_not_ready(one)) if one.sidecar or not one.init else ""


def _initializes(one: Container) -> str:
    return _named(one, " runs") if one.init and not one.sidecar and one.running else ""


# What keeps a pod from starting comes first: an init container or a sidecar may run beside it for ever.
_LOOKS = (_waits, _initializes, _is_not_ready)


def _named(one: Container, found: str) -> str:
    kind = "init container" if one.init else "container"
    return f"{kind} {one.name}{found}" if found else ""


def _why_waiting(one: Container) -> str:
    if one.waiting in _IMAGE_PULL:
        return f": ImagePullBackOff: image {one.image} can't be pulled"
    if one.waiting == "CrashLoopBackOff":
        return f": CrashLoopBackOff{f': {_ended(one.before.code, one.before.reason)}' if one.before else ''}"
    told = f": {one.told}" if one.told else ""
    return "" if one.waiting in _ON_ITS_WAY else f": {one.waiting}{told}"


def _why_not_ready(one: Container) -> str:
    if one.ended is not None:
        return f" {_ended(one.ended.code, one.ended.reason)}"
    return " runs but is not Ready: its readiness probe does not succeed" if one.running and not one.ready else ""
