"""
Whether a worker was lost while a launcher ran.

Owns: the digest of the workers' containers at the begin of an attempt, when all are Ready, by which losses are
found. What counts is which containers there are, not when something happened: the clocks of two nodes tell no
order. A launcher may start its commands anew when a worker is lost. Its account (mpirt/account.py) then names the
containers in which its last commands ran: if those are the ones that there are now, the loss is mended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from mpirt.account import Account, read
from mpirt.controller.model.attempts import Attempt, How, PodEnd
from mpirt.controller.model.objectnames import MOST_WORKERS, worker_names
from mpirt.controller.model.reading import digest
from mpirt.controller.model.spec import JobSpec
from mpirt.controller.observed.facts import Observed, all_usable, is_dead
from mpirt.controller.observed.pods import Pod

# In how many seconds a busy node reports that a container has ended.
_REPORTED_WITHIN = timedelta(seconds=10)


def workers_now(spec: JobSpec, observed: Observed) -> str:
    """Return the digest of the workers' containers, and how many workers it covers."""
    return _digest(spec, observed, spec.workers.replicas)


def without_leaving(spec: JobSpec, observed: Observed, attempt: Attempt) -> Attempt:
    """Return an attempt that goes on, without the workers that are to go, if it has lost none by itself."""
    if _count(attempt) <= spec.workers.replicas or _have_changed(spec, observed, attempt):
        return attempt
    return replace(attempt, workers=workers_now(spec, observed))


def may_be_of_the_one_before(spec: JobSpec, observed: Observed, attempt: Attempt) -> bool:
    """
    Whether a container that is another one now may be the loss that has ended the attempt before.

    Nodes report late, and the next attempt begins at once. What it loses itself is a death in it.
    """
    failed = observed.written_failure
    if attempt.ended or attempt.deaths or not attempt.workers or failed is None or failed.at is None:
        return False
    is_soon = timedelta() <= observed.now - failed.at < _REPORTED_WITHIN
    return is_soon and all_usable(spec.workers.names, observed)


def losses(spec: JobSpec | None, observed: Observed, attempt: Attempt) -> tuple[PodEnd, ...] | None:
    """
    Return the losses that a launcher which has ended with code 0 tells itself; None if no worker was lost.

    Empty if one was lost, and its death is in the attempt, or was not seen. Without a spec only what the attempt
    holds is known.
    """
    if spec is None:
        return () if attempt.workers and attempt.deaths else None
    account = _account(spec, observed, attempt.launcher)
    if account.lost:
        return tuple(PodEnd(one.pod, How.CUT_OFF, code=one.code) for one in account.lost)
    if "" in _containers(spec, observed, account.silent):
        return ()
    # Their times are those of nodes' clocks: a death before the attempt may seem to be one in it.
    if not (_have_changed(spec, observed, attempt) if _count(attempt) else attempt.deaths):
        return None
    return None if _is_mended(spec, observed, attempt, account) else ()


def are_unheard(spec: JobSpec, observed: Observed, launcher: str) -> bool:
    """Whether a command in a worker may have ended together with the launcher, without a word of that."""
    return bool(_account(spec, observed, launcher).silent)


def are_settled(spec: JobSpec, observed: Observed, launcher: str) -> bool:
    """Whether the launcher has reported how all its commands have ended: their nodes have nothing to add."""
    return _account(spec, observed, launcher).is_settled


def _have_changed(spec: JobSpec, observed: Observed, attempt: Attempt) -> bool:
    count = _count(attempt)
    return count > 0 and _digest(spec, observed, count) != attempt.workers


def _count(attempt: Attempt) -> int:
    count = attempt.workers.partition("-")[0]
    # Whoever may write the status may have written any number.
    return int(count) if count.isdecimal() and len(count) <= len(str(MOST_WORKERS)) else 0


def _is_mended(spec: JobSpec, observed: Observed, attempt: Attempt, account: Account) -> bool:
    """Whether the last commands ran in the successors of all that are known to have died."""
    dead = [death.pod for death in attempt.deaths]
    if not dead or attempt.more:
        return False
    pairs = zip(dead, _containers(spec, observed, dead), strict=True)
    return all(container != "" and account.again.get(name) == container for name, container in pairs)


def _account(spec: JobSpec, observed: Observed, launcher: str) -> Account:
    pods = (*observed.launchers, *observed.previous_launchers, *observed.departed_launchers)
    pod = next((one for one in pods if one.name == launcher), None)
    found = [] if pod is None else pod.decisive(spec.launcher.template.main)
    return next((read(one.ended.message) for one in found if one.ended is not None), Account())


def _digest(spec: JobSpec, observed: Observed, count: int) -> str:
    return f"{count}-{digest(_containers(spec, observed, worker_names(spec.key.name, count)))}"


def _containers(spec: JobSpec, observed: Observed, names: Iterable[str]) -> list[str]:
    """Return which containers the workers of these names are; empty for each that is not a worker any more."""
    pods = observed.workers_by_name
    return [_container(pods.get(name), spec.workers.template.main) for name in names]


def _container(pod: Pod | None, main: str) -> str:
    if pod is None or is_dead(pod):
        return ""
    return next((one.identity for one in pod.decisive(main) if one.running), "")
