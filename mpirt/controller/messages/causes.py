"""
Messages about pods and attempts: why a pod is not Ready, how it ended, why a launcher was restarted or a job
failed.

Owns: these sentences. Each names the cause, and stays the same as long as the cause does: alternating reasons
(ErrImagePull, ImagePullBackOff) get one wording, because each change is a write. Workers come first, because the
launcher's last lines are long.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from mpirt import names
from mpirt.controller.model.attempts import Attempt, History, How, PodEnd, Stop
from mpirt.controller.observed.facts import JobEnd
from mpirt.controller.observed.history import failure
from mpirt.controller.observed.pods import EVICTED, Container, Pod

ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons for waiting that are no trouble."""
_IMAGE_PULL = frozenset({"ErrImagePull", "ImagePullBackOff"})
SHOWN = 3
"""List at most this many pods; count the rest."""
LAUNCHER_POD = "launcher pod "
"""How a sentence about a launcher begins."""

# The exit codes by which shells, mpirun and container runtimes report that a signal has ended a process.
_SIGNALS = {129: "SIGHUP", 130: "SIGINT", 134: "SIGABRT", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}

# The reason of a Job without attempts left. Ends for other reasons have nothing to do with how its last pod ended.
NO_MORE_ATTEMPTS = "BackoffLimitExceeded"
# How the last pod ends if the Job ends for another reason: the Job itself deletes it.
_BY_THE_JOB = frozenset({How.DELETED, How.GONE})
# How long mpirun may take to notice that a worker is gone.
_RIGHT_BEFORE = timedelta(seconds=10)
STOPS: Mapping[Stop, str] = {
    Stop.LAUNCHER_CHANGED: "the launcher's template was changed",
    Stop.WORKERS_CHANGED: "the workers' template was changed",
    Stop.JOB_DELETED: "the launcher Job was deleted",
    Stop.SUSPENDED: "the job was suspended",
    Stop.WORKER_LOST: "a worker was lost while the launcher ran",
}


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


def whose(owner: str) -> str:
    """Return whose an object is, by the kind and name of its owner."""
    return f"belongs to {owner}" if owner else "has no owner"


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
    message = f": {one.message}" if one.message else ""
    return "" if one.waiting in ON_ITS_WAY else f": {one.waiting}{message}"


def _why_not_ready(one: Container) -> str:
    if one.ended is not None:
        return f" {_ended(one.ended.code, one.ended.reason)}"
    return " runs but is not Ready: its readiness probe does not succeed" if one.running and not one.ready else ""


def while_running(attempt: Attempt) -> str:
    """Return the workers that died since the launcher started; empty if none did."""
    return listed([pod_end(death) for death in attempt.deaths], attempt.more)


def of_attempt(attempt: Attempt) -> str:
    """Return why an attempt ended."""
    if attempt.stopped is Stop.WORKER_LOST:
        return f"{while_running(attempt) or STOPS[Stop.WORKER_LOST]}; {_no_success(attempt)}"
    if attempt.stopped is not None:
        return STOPS[attempt.stopped]
    end = attempt.ended
    return "; ".join(filter(None, (while_running(attempt), launcher_end(end) if end is not None else "")))


def _no_success(attempt: Attempt) -> str:
    return (
        f"{LAUNCHER_POD}{attempt.launcher} ended with code 0 all the same, which does not count as a success; if "
        f'the job copes with the loss of workers, annotate it with {names.TOLERATES_ANNOTATION}: "true"'
    )


def of_restart(history: History) -> str:
    """Return why the launcher was last restarted; empty if it never was."""
    ended = [one for one in history.attempts[:-1] if one.ended or one.stopped]
    return of_attempt(ended[-1]) if ended else ""


def of_end(history: History, end: JobEnd) -> str:
    """Return why the job has failed for good."""
    last = history.last
    is_reported = (
        last is not None
        and last.ended is not None
        and (last.stopped or end.reason == NO_MORE_ATTEMPTS or last.ended.how not in _BY_THE_JOB)
    )
    return "; ".join(filter(None, (end.message, of_attempt(last) if last is not None and is_reported else "")))


def before_success(history: History) -> str:
    """
    Return the workers that died right before the launcher ended with 0; empty if none did.

    mpirun of Open MPI 5 (PRRTE 3) loses the exit code when it loses a worker. Only the times tell such an end from
    a good one, and those of kubelets have no fractions of a second.
    """
    last = history.last
    if last is None or last.ended is None or last.ended.at is None or last.ended.code != 0:
        return ""
    since, until = last.ended.at - _RIGHT_BEFORE, last.ended.at
    return listed([pod_end(one) for one in last.deaths if one.at is not None and since <= one.at <= until], 0)


def reason_of(history: History) -> str:
    """Return the cause of the last attempt's failure as a suffix of the reason, as mpi-operator appends it."""
    end = history.last.ended if history.last is not None else None
    if end is None:
        return ""
    word = "Evicted" if end.how is How.EVICTED else end.reason
    is_of_pod = end.how in (How.EVICTED, How.FAILED, How.EXITED)
    return f"/{word}" if is_of_pod and word not in ("", "Error", "Completed") else ""


def launcher_end(end: PodEnd) -> str:
    """Return how a launcher's pod ended, with its last lines."""
    words = f": {end.message}" if end.how is How.EXITED and end.message else ""
    return f"{LAUNCHER_POD}{pod_end(end, name_container=False)}{words}"
