"""
How a pod ended, as far as its object shows that.

Owns: what counts as the end of a launcher and as the death of a worker. Of a worker's containers only the main one
counts, whatever its exit code: what ran in it has ended with it. A log shipper that restarts, an init container
that completes and a sidecar that is ended after the others end no job.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from mpirt.account import SAYS, without_data
from mpirt.controller.model.attempts import How, PodEnd
from mpirt.controller.model.reading import shortened
from mpirt.controller.observed.pods import EVICTED, Container, Ended, Pod

_ANY_TIME = datetime.max.replace(tzinfo=UTC)
# The most that a kubelet keeps of a container's last lines, and more than its message about an eviction.
LONGEST_WORDS = 2048


def launcher_end(pod: Pod, main: str) -> PodEnd | None:
    """Return how a launcher's pod ended, or is ending, with its last lines; None while it is neither."""
    if found := _pod_end(pod):
        return found
    if not pod.is_over:
        return None
    ends = [(one, one.ended) for one in pod.main_first(main) if one.ended is not None and not one.sidecar]
    if pod.phase == "Succeeded":
        return next((_exited(pod, one, end) for one, end in ends), PodEnd(pod.name, How.EXITED, pod.node, code=0))
    failed = next((_exited(pod, one, end) for one, end in ends if end.code != 0), None)
    return failed or PodEnd(pod.name, How.FAILED, pod.node, at=pod.ended)


def worker_death(pod: Pod, main: str, since: datetime) -> PodEnd | None:
    """Return how a worker, or its main container, died since then; None if neither did."""
    if pod.gone is not None and pod.gone < since:
        return None
    if pod.is_over and pod.ended_by_deletion and not pod.reason:
        return _deletion(pod)
    return _pod_end(pod) or container_death(pod, main, since)


def container_death(pod: Pod, main: str, since: datetime, until: datetime = _ANY_TIME) -> PodEnd | None:
    """Return how the main container of a worker died between two moments; None if it didn't."""
    for one in pod.decisive(main):
        for end in (one.ended, one.before):
            if end is not None and end.at is not None and since <= end.at <= until:
                return _exited(pod, one, end)
    return None


def failure(pod: Pod) -> PodEnd:
    """Return how a pod failed as a whole, or was evicted."""
    how = How.EVICTED if pod.reason == EVICTED else How.FAILED
    reason = "" if how is How.EVICTED else pod.reason
    message = shortened(pod.message, LONGEST_WORDS)
    return PodEnd(pod.name, how, pod.node, reason=reason, message=message, at=pod.ended)


def _pod_end(pod: Pod) -> PodEnd | None:
    """Return the end of the pod as a whole (failed, lost or deleted); None if there is none."""
    if pod.reason:
        return failure(pod)
    if pod.is_over:
        return None
    if pod.cut_off is not None:
        return PodEnd(pod.name, How.NODE_LOST, pod.node, at=pod.cut_off)
    return _deletion(pod) if pod.was_deleted else None


def _deletion(pod: Pod) -> PodEnd:
    at = pod.asked_to_end or (pod.gone.replace(microsecond=0) if pod.gone else None)
    return PodEnd(pod.name, How.DELETED, pod.node, reason=pod.disruption, at=at)


def _exited(pod: Pod, one: Container, end: Ended) -> PodEnd:
    if end.is_lost:
        return PodEnd(pod.name, How.NODE_LOST, pod.node, one.name, end.code, end.reason, at=end.at)
    return PodEnd(
        pod.name,
        How.EXITED,
        pod.node,
        one.name,
        end.code,
        end.reason,
        shortened(_cause_first(end.message), LONGEST_WORDS),
        end.at,
    )


def _cause_first(lines: str) -> str:
    """Move the lines of mpirt-rsh before the rest: the job's own output, and the launcher's comments on it."""
    kept: Iterable[str] = sorted(without_data(lines).splitlines(), key=lambda line: not line.startswith(SAYS))
    return "\n".join(kept)
