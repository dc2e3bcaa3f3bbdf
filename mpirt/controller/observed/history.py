"""
How pods ended, and the history of a job, kept up to date.

Owns: what counts as the end of a launcher and as the death of a worker. Of a worker's containers only the main one
counts, whatever its exit code: what ran in it has ended with it. A log shipper that restarts, an init container
that completes and a sidecar that is ended after the others end no job.

Owns as well: merging what is observed now into what is recorded. A replacement pod shows nothing of the pod
before it, so what was recorded stays. The recorded end of a launcher may be replaced by one that says more; only
its loss with its node is withdrawn, if the node reports again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from mpirt.account import SAYS, without_data
from mpirt.controller.model import kinds
from mpirt.controller.model.attempts import KEPT_ATTEMPTS, KEPT_DEATHS, Attempt, History, How, PodEnd, Stop
from mpirt.controller.model.reading import shortened
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import Observed, all_usable, is_behind, is_of_revision, outdated
from mpirt.controller.observed.losses import losses, may_be_of_the_one_before, without_leaving, workers_now
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


# Ends that are replaced if one that tells more becomes known later.
_IMPROVABLE = frozenset({How.DELETED, How.NODE_LOST, How.GONE})
_BETTER = frozenset({How.EVICTED, How.FAILED})


def history(spec: JobSpec | None, observed: Observed, *, suspended: bool = False) -> History:
    """
    Return the history as of observed.now. `suspended`: whether the job is, where there is no spec that says so.

    Without a spec, the current attempt gets no deaths: some may be intended.
    """
    if observed.is_reopened:
        return History(rerun=observed.rerun)
    known = observed.history or History()
    if observed.is_over:
        return replace(known, attempts=_with_late_news(spec, observed, known.attempts))
    attempts = _with_launchers(spec, observed, known)
    if _may_stop(observed, attempts, known):
        attempts[-1] = replace(attempts[-1], stopped=_stop(spec, observed, suspended=suspended))
    if attempts and spec is not None and attempts[-1].stopped is None:
        last = _begun(spec, observed, attempts[-1])
        before = _with_late_news(spec, observed, tuple(attempts))[:-1]
        last = _with_deaths(last, _without(before, _deaths(spec, observed, last)))
        if may_be_of_the_one_before(spec, observed, last):
            last = replace(last, workers=workers_now(spec, observed))
        attempts[-1] = last if last.ended else without_leaving(spec, observed, last)
    kept = _with_late_news(spec, observed, tuple(attempts))
    dropped = max(0, len(kept) - KEPT_ATTEMPTS)
    happened = History(kept[dropped:], known.forgotten + dropped, observed.rerun, known.failure)
    return _judged(spec, observed, happened)


def _with_launchers(spec: JobSpec | None, observed: Observed, known: History) -> list[Attempt]:
    """Return the recorded attempts and the new ones, updated by what their pods show."""
    main = "" if spec is None else spec.launcher.template.main
    attempts = {one.launcher: one for one in known.attempts}
    pods = (*observed.departed_launchers, *observed.previous_launchers, *observed.launchers)
    since = _latest(
        observed.created,
        *(one.created for one in known.attempts),
        *(pod.created for pod in pods if pod.name in attempts),
    )
    seen = set()
    for pod in pods:
        end = launcher_end(pod, main)
        has_begun = pod.started is not None or end is not None
        if pod.name in attempts or (has_begun and _is_new(pod, since)):
            attempts[pod.name] = _of_pod(attempts.get(pod.name) or Attempt(pod.name), pod, end)
            seen.add(pod.name)
    gone = observed.now.replace(microsecond=0)
    return [
        one if one.ended or one.launcher in seen else replace(one, ended=PodEnd(one.launcher, How.GONE, at=gone))
        for one in attempts.values()
    ]


def _begun(spec: JobSpec, observed: Observed, attempt: Attempt) -> Attempt:
    """
    Return the attempt with its begin, if it has begun: its launcher runs, and all workers are Ready.

    A launcher that only starts when they are Ready has begun then.
    """
    begun, is_over = attempt.started, attempt.ended is not None
    if attempt.begun is not None or begun is None:
        return attempt
    if spec.starts_before_workers:
        if is_over or not all_usable(spec.workers.names, observed):
            return attempt
        found = (one for pod in observed.workers for one in pod.decisive(spec.workers.template.main))
        begun = max([begun, *(one.started for one in found if one.running and one.started)])
    is_counted = spec.needs_every_worker and not is_over
    return replace(attempt, begun=begun, workers=workers_now(spec, observed) if is_counted else "")


def _is_new(pod: Pod, since: datetime | None) -> bool:
    """
    Whether an unknown pod was created after the pods of the recorded attempts, and for this job.

    Pods may remain of attempts that are no longer kept, and of a previous job of the same name. Only times of the
    API server are compared: a node's clock may be wrong.
    """
    return pod.created is None or since is None or pod.created >= since


def _latest(*times: datetime | None) -> datetime | None:
    return max((one for one in times if one is not None), default=None)


def _of_pod(known: Attempt, pod: Pod, end: PodEnd | None) -> Attempt:
    return replace(
        known,
        node=pod.node or known.node,
        started=known.started or pod.started,
        created=known.created or pod.created,
        ended=_settled(known.ended, end),
    )


def _settled(before: PodEnd | None, after: PodEnd | None) -> PodEnd | None:
    """Return the end of a pod, given the recorded end and the one that it shows."""
    if before is None:
        return after
    if after is None:
        return None if before.how is How.NODE_LOST else before
    is_better = before.how is How.GONE or (before.how in _IMPROVABLE and after.how in _BETTER)
    return after if is_better else before


def _may_stop(observed: Observed, attempts: list[Attempt], known: History) -> bool:
    """Whether the last attempt, which has not ended by itself, may have been ended on purpose."""
    if not attempts or attempts[-1].stopped is not None or observed.end is not None:
        return False
    last, before = attempts[-1], known.last
    return before is None or before.launcher != last.launcher or before.ended is None


def _judged(spec: JobSpec | None, observed: Observed, happened: History) -> History:
    """Return the history with the verdict on the launcher Job, if there is a new one."""
    failure, last = observed.failure, happened.last
    if failure is None or failure == happened.failure:
        return happened
    if not failure.lost or last is None:
        return replace(happened, failure=failure)
    failed = replace(_with_deaths(last, losses(spec, observed, last) or ()), stopped=Stop.WORKER_LOST)
    return replace(happened, attempts=(*happened.attempts[:-1], failed), failure=failure)


def _stop(spec: JobSpec | None, observed: Observed, *, suspended: bool) -> Stop | None:
    job = observed.mine.get(kinds.JOB)
    if suspended or (spec is not None and spec.run.suspended):
        return Stop.SUSPENDED
    if job is not None and spec is not None and (changed := outdated(spec, job)):
        return changed
    return Stop.JOB_DELETED if job is None or job.deleting else None


def _deaths(spec: JobSpec, observed: Observed, attempt: Attempt) -> Iterator[PodEnd]:
    """Yield the deaths of workers, departed ones included, except those that were asked for."""
    if attempt.begun is None:
        return
    for pod in (*observed.departed, *observed.workers):
        death = worker_death(pod, spec.workers.template.main, attempt.begun)
        if death is not None and not _is_asked_to_go(spec, observed, pod):
            yield death


def _without(before: Iterable[Attempt], deaths: Iterable[PodEnd]) -> Iterator[PodEnd]:
    """Yield these deaths, less those of earlier attempts: the next attempt may begin in the same second."""
    told = {(death.pod, death.at) for attempt in before for death in attempt.deaths}
    return (death for death in deaths if death.at is None or (death.pod, death.at) not in told)


def _is_asked_to_go(spec: JobSpec, observed: Observed, pod: Pod) -> bool:
    """Whether the pod goes because the job was scaled or its workers' template changed, as far as is known."""
    if not pod.was_deleted:
        return False
    if (roster := observed.status.roster) is not None:
        return pod.name in roster.leaving or pod.name not in roster.everybody
    workers = observed.mine.get(kinds.STATEFUL_SET)
    is_wanted = pod.name in spec.workers.names
    # A StatefulSet replaces its pods first, and only then reports that it has seen the change.
    return workers is not None and (is_behind(workers) or not is_wanted or not is_of_revision(workers, pod))


def _with_late_news(
    spec: JobSpec | None, observed: Observed, attempts: tuple[Attempt, ...]
) -> tuple[Attempt, ...]:
    """Return the attempts, with the deaths that nodes reported only after the attempt was over."""
    end = observed.end
    until = [*(later.started for later in attempts[1:]), end.at if end is not None else None]
    pods = (*observed.workers, *observed.previous_workers)
    updated = []
    for one, before in zip(attempts, until, strict=False):
        # Without a spec it is unknown which container is the main one.
        if spec is None or one.begun is None or before is None or one.stopped is not None:
            updated.append(one)
            continue
        late = (container_death(pod, spec.workers.template.main, one.begun, before) for pod in pods)
        updated.append(_with_deaths(one, _without(updated, (death for death in late if death is not None))))
    if updated and end is not None and updated[-1].stopped is None:
        updated[-1] = _with_end(spec, observed, updated[-1])
    return tuple(updated)


def _with_end(spec: JobSpec | None, observed: Observed, attempt: Attempt) -> Attempt:
    """Return the last attempt of a finished job with the end of its pod, which may become known last."""
    main = "" if spec is None else spec.launcher.template.main
    pod = next((one for one in observed.launchers if one.name == attempt.launcher), None)
    return attempt if pod is None else _of_pod(attempt, pod, launcher_end(pod, main))


def _with_deaths(attempt: Attempt, deaths: Iterable[PodEnd]) -> Attempt:
    """Return the attempt with these deaths, less those of pods that it names already."""
    known = {one.pod: one for one in attempt.deaths}
    room = max(KEPT_DEATHS, len(known))
    for death in deaths:
        known.setdefault(death.pod, death)
    found = list(known.values())
    return replace(attempt, deaths=tuple(found[:room]), more=max(attempt.more, len(found) - room))
