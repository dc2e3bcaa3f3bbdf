"""
Why a launcher is gone, and which workers died.

Owns: putting what the objects show together with what the last status told. A pod that took another one's place
tells nothing of it, and what is known first is often the most: what was told of a launcher's workers stays until
there is another launcher. Workers come first in a sentence, for the launcher's last lines are long.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

from mpirt.controller.messages.sentences import LAUNCHER_POD, SHOWN, container_death, death, launcher_end, listed
from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Condition, JobStatus, Reason, Type
from mpirt.controller.model.objectnames import worker_names
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import JobEnd, is_behind, is_finished, is_of_revision, is_outdated
from mpirt.controller.observed.observe import Observed
from mpirt.controller.observed.pods import Pod

# What a Job says that may make no further attempt; all other ends have nothing to do with how its last pod ended.
_NO_MORE_ATTEMPTS = "BackoffLimitExceeded"

# What is said when a launcher runs and something of the job doesn't.
_TROUBLED = frozenset({Reason.WORKER_FAILED, Reason.LAUNCHER_FAILED})


def while_running(spec: JobSpec, observed: Observed, launcher: Pod) -> str:
    """The workers that died since the launcher began; nothing if none did."""
    return _with(_known(observed.status, launcher), _deaths(spec, observed, launcher))


def of_restart(spec: JobSpec, observed: Observed) -> str:
    """Why the launcher has to start again. Once it is known it stays, until there is a newer cause."""
    job, before = observed.mine.get(kinds.JOB), _true(observed.status, Type.RESTARTING)
    if job is not None and (outdated := is_outdated(spec, job)):
        return outdated
    if job is None or job.deleting:
        return before or "the launcher Job was deleted"
    last = _last_gone(observed)
    if last is None or f"{last.name} was deleted" in before or _had_successor(observed, last):
        return _of_vanished(observed.status)
    return _of_attempt(spec, observed, last)


def of_end(spec: JobSpec | None, observed: Observed, end: JobEnd) -> str:
    """Why the job has failed for good. Without a spec what workers show now is not looked at."""
    last = last_failed(observed)
    if end.reason == _NO_MORE_ATTEMPTS and _has_vanished(observed):
        attempt = _of_vanished(observed.status)
    else:
        attempt = _of_attempt(spec, observed, last) if last is not None else ""
    return "; ".join(filter(None, (end.message, attempt)))


def of_earlier_attempt(observed: Observed, told: str) -> str:
    """What was told of an attempt that failed, with what nodes have reported since."""
    for launcher, successor in pairwise(observed.launchers):
        if launcher.name in told:
            return _with_late_deaths(observed, told, launcher, successor.began)
    return told


def known_later(observed: Observed, told: str, end: JobEnd) -> str:
    """What was told at the end, with what nodes had not reported yet: workers' deaths, or the launcher's."""
    last = last_failed(observed)
    if last is None:
        return told
    if LAUNCHER_POD not in told:
        told = "; ".join(filter(None, (told, launcher_end(last))))
    return _with_late_deaths(observed, told, last, end.at)


def unexplained_since(observed: Observed, end: JobEnd) -> datetime | None:
    """When the Job failed, if its pod has not been seen to fail: the cause is still on its way."""
    is_seen = last_failed(observed) is not None and all(pod.is_over for pod in observed.launchers)
    return None if end.succeeded or is_finished(observed.status) or is_seen else end.at


def exhausted_since(spec: JobSpec, observed: Observed) -> datetime | None:
    """When the last attempt that the job may make failed; None while there may be another."""
    pods = observed.launchers
    may_try = len(pods) <= spec.run.retries or any(pod.phase != "Failed" for pod in pods)
    if may_try or observed.live(kinds.JOB) is None:
        return None
    return _ended(pods[-1])


def last_failed(observed: Observed) -> Pod | None:
    """The newest of the launcher's pods that failed."""
    return next((pod for pod in reversed(observed.launchers) if pod.phase == "Failed"), None)


def reason_of(observed: Observed) -> str:
    """What made the last attempt fail, in a word, as mpi-operator adds it."""
    pod = last_failed(observed)
    if pod is None or _had_successor(observed, pod):
        return ""
    reasons = [pod.reason, *(one.ended.reason for one in pod.containers if one.ended is not None)]
    return next((f"/{reason}" for reason in reasons if reason not in ("", "Error", "Completed")), "")


def _with_late_deaths(observed: Observed, told: str, launcher: Pod, until: datetime | None) -> str:
    """What was told of a launcher's end, with the workers that had died by then."""
    if launcher.began is None or until is None:
        return told
    head, mark, tail = told.partition(LAUNCHER_POD)
    late = [container_death(pod, launcher.began, until) for pod in (*observed.workers, *observed.earlier)]
    workers = _with(head.removesuffix("; "), [words for words in late if words])
    return "; ".join(filter(None, (workers, f"{mark}{tail}")))


def _of_attempt(spec: JobSpec | None, observed: Observed, launcher: Pod) -> str:
    """How an attempt ended, and which workers died before that."""
    deaths = [] if spec is None else _deaths(spec, observed, launcher)
    workers = _with(_known(observed.status, launcher), deaths)
    return "; ".join(filter(None, (workers, launcher_end(launcher))))


def _has_vanished(observed: Observed) -> bool:
    """Whether the pod of the last attempt is gone. Failed pods of earlier attempts may still be there."""
    pods, last = observed.launchers, _last_gone(observed)
    is_last_gone = last is not None and _had_successor(observed, last)
    return is_last_gone or all(pod.phase != "Failed" and pod.deleted is not None for pod in pods)


def _had_successor(observed: Observed, last: Pod) -> bool:
    """Whether the last status is about a launcher that came after this pod, and is gone by now."""
    told = _held(observed.status, Type.RUNNING) or _held(observed.status, Type.RESTARTING)
    if told is None or LAUNCHER_POD not in told.message.lower():
        return False
    ended = _ended(last) or last.created
    is_newer = ended is not None and ended >= told.changed.replace(microsecond=0)  # pods have whole seconds
    return not is_newer and not any(pod.name in told.message for pod in observed.launchers)


def _launcher_told(status: JobStatus) -> str:
    """The message of the condition Running, if it holds and is about a launcher pod; else nothing."""
    told = _true(status, Type.RUNNING)
    return told if told.lower().startswith(LAUNCHER_POD) else ""


def _of_vanished(status: JobStatus) -> str:
    """The same of a launcher whose pod is gone: what the last status says of it."""
    if restarting := _true(status, Type.RESTARTING):
        return restarting
    launcher, _, rest = _launcher_told(status).partition("; ")
    if not launcher:
        return "the launcher's pod is gone"
    is_troubled = status.conditions[Type.RUNNING].reason in _TROUBLED
    name, runs, _ = launcher.partition(" runs on ")
    gone = f"{name} is gone" if runs else launcher
    return "; ".join(filter(None, (rest if is_troubled else "", f"{gone[:1].lower()}{gone[1:]}")))


def _last_gone(observed: Observed) -> Pod | None:
    """The newest of the launcher's pods that failed or is being deleted."""
    gone = [pod for pod in observed.launchers if pod.phase == "Failed" or pod.deleted is not None]
    return gone[-1] if gone else None


def _ended(pod: Pod) -> datetime | None:
    """When the last of its containers ended."""
    return max((one.ended.at for one in pod.containers if one.ended and one.ended.at), default=None)


def _deaths(spec: JobSpec, observed: Observed, launcher: Pod) -> list[str]:
    """The workers' deaths that show now, or did a moment ago, less those that were asked for."""
    began = launcher.began
    if began is None:
        return []
    found: dict[str, str] = {}
    for pod in (*observed.vanished, *observed.workers):
        if not _is_asked_to_go(spec, observed, pod) and (words := death(pod, began)):
            found.setdefault(pod.name, words)
    return list(found.values())


def _is_asked_to_go(spec: JobSpec, observed: Observed, pod: Pod) -> bool:
    """Whether it goes because the job was scaled, or its workers' template changed, as far as that is known."""
    workers = observed.mine.get(kinds.STATEFUL_SET)
    if workers is None or not pod.was_deleted:
        return False
    is_wanted = pod.name in worker_names(spec.key.name, spec.workers.replicas)
    # A StatefulSet rolls its pods first, and says then that it has seen the change.
    return is_behind(workers) or not is_wanted or not is_of_revision(workers, pod)


def _known(status: JobStatus, launcher: Pod) -> str:
    """What was told of workers that died while this launcher ran."""
    running, restarting = _true(status, Type.RUNNING), _true(status, Type.RESTARTING)
    if launcher.name in running and status.conditions[Type.RUNNING].reason in _TROUBLED:
        return running.partition("; ")[2]
    if launcher.name in restarting:
        return restarting.partition(LAUNCHER_POD)[0].removesuffix("; ")
    return ""


def _with(known: str, deaths: list[str]) -> str:
    """What is known already, with the deaths of other pods."""
    fresh = [words for words in deaths if words.partition(" ")[0].rstrip(":") not in _pods_in(known)]
    room = max(0, SHOWN - len(known.split("; ")))
    return "; ".join([known, *fresh[:room]]) if known else listed(fresh)


def _pods_in(told: str) -> set[str]:
    return {word.rstrip(":") for word in told.split()}


def _true(status: JobStatus, kind: Type) -> str:
    """The message of a condition that holds."""
    found = _held(status, kind)
    return found.message if found is not None else ""


def _held(status: JobStatus, kind: Type) -> Condition | None:
    found = status.conditions.get(kind)
    return found if found is not None and found.status else None
