"""
How often and how long to ask, and what is said of the answer.

Owns: which answers are good enough, which errors may pass by themselves, the pauses, and the end; which pods are
too few to be believed, and the lines about workers that are left out. Clock, sleep and chance are handed in; what
is asked is too. The same by the API server and by a switchboard.

horovodrun takes a failure of the very first call for the end of the job, and of every later one for a warning,
after which the hosts stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mpirt.backoff import Backoff
from mpirt.discover.discovery import Criteria, Found, Pod, discover
from mpirt.discover.options import Selection
from mpirt.errors import ConfigError, MpirtError, NoPod, NotReady, Refused, SpecError, UsageError
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.answers import Overloaded, TimedOut
from mpirt.values import Value

Clock = Callable[[], float]

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 1.0
# What the last question has left for its answer.
_LAST_CHANCE = 0.5
_SHOWN = 8


class Patience(Value):
    """Which answer is good enough, and how long to ask for it."""

    seconds: float
    """For everything."""
    each: float
    """For one question."""
    enough: int = 0
    """How many hosts are enough."""
    insists: bool = False
    """Whether less than enough is a failure in the end."""
    retries: bool = False
    """Whether to ask again after an error that may pass."""
    refusals_pass: float = 0.0
    """
    For how long, from the first of several in a row, a 403 is such an error: a RoleBinding may come a little later
    than its pod, and an API server that has just begun listens before it knows the Roles (kubernetes#121635).
    """
    has_hosts: bool = False
    """Whether the job has been found before, so that no pods at all means no hosts."""


def ask(
    question: Callable[[Deadline], Found],
    patience: Patience,
    *,
    clock: Clock,
    sleep: Callable[[float], None],
    jitter: Clock,
    tell: Callable[[str], None],
    spent: float = 0.0,
) -> Found:
    """
    Ask until the answer is good enough or the time is over, of which some may be `spent`.

    `tell` hears why it goes on. An alarm may end a question or a pause with TimedOut: what was known before counts
    then.
    """
    whole = Deadline(patience.seconds - spent, clock=clock)
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, jitter)
    refused_since: float | None = None
    before: Found | MpirtError | None = None
    while True:
        outcome = _outcome(question, whole.within(patience.each))
        now = clock()
        refused_since = (now if refused_since is None else refused_since) if isinstance(outcome, Refused) else None
        if is_final(outcome, patience, 0.0 if refused_since is None else now - refused_since):
            return _settled(outcome, patience, before)
        asked, left = pause_asked_for(outcome), whole.left() - _LAST_CHANCE
        if left <= asked:
            return _settled(outcome, patience, before)
        before = outcome
        try:
            tell(str(outcome) if isinstance(outcome, MpirtError) else missing(outcome, patience.enough))
            sleep(min(max(asked, backoff.next()), left))
        except TimedOut:
            # A busy machine made the pause longer than all the time that was left.
            return _settled(outcome, patience, None)


def _outcome(question: Callable[[Deadline], Found], deadline: Deadline) -> Found | MpirtError:
    try:
        return question(deadline)
    except MpirtError as error:
        return error


def is_final(outcome: Found | MpirtError, patience: Patience, refused_for: float = 0.0) -> bool:
    """Whether another question would not be worth its while."""
    if not isinstance(outcome, MpirtError):
        return len(outcome.hosts) >= patience.enough
    return not pause_asked_for(outcome) and not (patience.retries and may_pass(outcome, patience, refused_for))


def _settled(outcome: Found | MpirtError, patience: Patience, before: Found | MpirtError | None) -> Found:
    """The result at the end of the time. A last question that had too little of it leaves the answer before it."""
    if isinstance(outcome, TimedOut) and before is not None:
        outcome = before
    if isinstance(outcome, MpirtError):
        raise outcome
    if patience.insists and len(outcome.hosts) < patience.enough:
        raise NotReady(f"{missing(outcome, patience.enough)}; gave up after {patience.seconds:g} s")
    return outcome


def may_pass(error: MpirtError, patience: Patience, refused_for: float) -> bool:
    """Whether an error may be gone when we ask again."""
    if isinstance(error, Refused):
        return refused_for < patience.refusals_pass
    return not isinstance(error, ConfigError | UsageError | SpecError)


def pause_asked_for(outcome: Found | MpirtError) -> float:
    """How many seconds an overloaded API server asks to wait."""
    return (outcome.failure.retry_after or 0.0) if isinstance(outcome, Overloaded) else 0.0


def missing(found: Found, enough: int) -> str:
    """Which workers are missing, and why, in one line."""
    shown = [str(each) for each in found.left_out[:_SHOWN]]
    if len(found.left_out) > _SHOWN:
        shown.append(f"{len(found.left_out) - _SHOWN} more")
    absent = enough - len(found.hosts) - len(found.left_out)
    if absent > 0:
        shown.append(f"{absent} not created yet")
    return f"{len(found.hosts)} of {enough} workers are Ready; {', '.join(shown)}"


def hosts_among(
    pods: Sequence[Pod],
    selection: Selection,
    *,
    namespace: str,
    criteria: Criteria,
    patience: Patience,
) -> Found:
    """
    The hosts among the pods of the selection.

    No pods at all are an empty list only if the job was found before. Raises NoPod, and what discover() does.
    """
    if not pods and not patience.has_hosts:
        raise NoPod(f"{selection.asked}: no pod in namespace {namespace} belongs to it; is the name right?")
    return discover(pods, criteria, asked=selection.asked)


def remarks(found: Found, patience: Patience, *, verbose: bool) -> list[str]:
    """The lines for stderr."""
    if verbose:
        return [f"left out: {each}" for each in found.left_out]
    if not found.hosts and patience.enough:
        return [f"no hosts: {missing(found, patience.enough)}"]
    return []
