"""
Changes of a job's workers: the next ScaleIn or ScaleOut, and the change that is under way.

Owns: which request is next, which workers it means and whether it is allowed; when workers have joined, when those
that leave may go, and what happens at the time limit. A list of names means exactly these workers; one that is
gone is done already, and a name that no worker ever had is reported. Workers leave with proof: each has answered
that no command runs in it, for some seconds, and all that leave go together. At the time limit a ScaleIn is
undone, unless it says that workers go by force; other changes go on without proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from mpirt.controller.messages.causes import SHOWN, listed
from mpirt.controller.messages.readiness import blocked, blocked_text
from mpirt.controller.model.actions import Question
from mpirt.controller.model.objectnames import worker_number
from mpirt.controller.model.reading import duration
from mpirt.controller.model.roster import Change, Outcome, Roster, Source
from mpirt.controller.model.spec import BarePods, JobSpec, Scaler
from mpirt.controller.observed.facts import Observed, all_gone, all_usable, is_gone, is_usable
from mpirt.controller.observed.pods import Pod

# How long workers that leave may be in use, unless the request sets a limit.
DEFAULT_LIMIT = timedelta(minutes=5)
# A launcher lists its hosts every second, and may be about to start a command on one that it has just listed.
IDLE_FOR = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Step:
    """The roster to write next, and when to look again."""

    roster: Roster
    again: datetime | None = None
    outcome: Outcome | None = None
    """How the change that was under way has ended, if it has."""


def scaler_change(spec: JobSpec, roster: Roster, observed: Observed) -> Change | None:
    """Return the change that the oldest ScaleIn or ScaleOut asks for; None if none asks for any."""
    scaler = next_scaler(observed)
    if scaler is None or refusal(spec, roster, scaler):
        return None
    change = Change(
        scaler.source,
        observed.now,
        name=scaler.name,
        uid=scaler.uid,
        seconds=scaler.seconds,
        force=scaler.force,
        leaving=leaving(roster, scaler),
        joining=roster.fresh(spec.key.name, scaler.count or 0) if scaler.source is Source.SCALE_OUT else (),
    )
    return change if change.leaving or change.joining else None


def next_scaler(observed: Observed) -> Scaler | None:
    """Return the oldest ScaleIn or ScaleOut without an outcome."""
    return next((one for one in observed.scalers if not one.is_over and not one.deleting), None)


def leaving(roster: Roster, scaler: Scaler) -> tuple[str, ...]:
    """Return the workers that a ScaleIn removes: those that it names, or those with the highest numbers."""
    if scaler.source is not Source.SCALE_IN:
        return ()
    if scaler.pods is not None:
        return tuple(name for name in roster.names if name in scaler.pods)
    return roster.names[len(roster.names) - (scaler.count or 0) :] if scaler.count else ()


def unknown(spec: JobSpec, roster: Roster, scaler: Scaler) -> tuple[str, ...]:
    """Return the names in a ScaleIn that no worker of the job ever had."""
    return tuple(name for name in scaler.pods or () if not roster.has_had(spec.key.name, name))


def unmatched(spec: JobSpec, roster: Roster, scaler: Scaler) -> str:
    """Return what is known of the names in a ScaleIn that mean no worker that could leave; empty if all do."""
    strange, there = unknown(spec, roster, scaler), leaving(roster, scaler)
    gone = [name for name in scaler.pods or () if name not in (*strange, *there)]
    parts = {"no worker of the job is named ": strange, "already gone or leaving: ": gone}
    return "; ".join(f"{words}{', '.join(found)}" for words, found in parts.items() if found)


def refusal(spec: JobSpec, roster: Roster, scaler: Scaler) -> str:
    """Return why a ScaleIn or ScaleOut is not carried out; empty if it is."""
    if scaler.problem:
        return scaler.problem
    limits = spec.workers.elastic
    there = len(roster.names)
    if scaler.source is Source.SCALE_OUT:
        if limits is None or there + (scaler.count or 0) <= limits.most:
            return ""
        return f"{there} workers and {scaler.count} more are above the limit of {limits.most}"
    least = 1 if limits is None else limits.least
    fewer = there - (len(leaving(roster, scaler)) if scaler.pods is not None else scaler.count or 0)
    if fewer >= least:
        return ""
    return f"of {there} workers {max(fewer, 0)} would be left, below minReplicas={least}"


def limit_of(change: Change) -> datetime:
    """Return when the time for a change is over."""
    return change.since + (DEFAULT_LIMIT if change.seconds is None else duration(change.seconds))


def continued(
    spec: JobSpec, bare: BarePods, roster: Roster, change: Change, observed: Observed
) -> tuple[Roster, Outcome | None]:
    """Return the roster with its change carried on, completed or undone, and the outcome in these two cases."""
    if withdrawn := _withdrawn(bare, roster, change, observed):
        return undone(roster), Outcome(change, succeeded=False, message=withdrawn)
    if is_complete(roster, change, observed):
        return _completed(bare, roster, change)
    if change.committed:
        return roster, None
    is_over = limit_of(change) <= observed.now
    goes_in_use = change.force or not change.is_by_scaler
    if change.leaving and (not in_use(change, observed) or (is_over and goes_in_use)):
        return replace(roster, change=replace(change, committed=True)), None
    if not is_over:
        return roster, None
    return undone(roster), Outcome(change, succeeded=False, message=_too_late(spec, roster, change, observed))


def undone(roster: Roster) -> Roster:
    """Return the roster without its change; workers that were about to join are not created any more."""
    joining = roster.change.joining if roster.change is not None else ()
    return replace(roster.without(joining), change=None)


def is_complete(roster: Roster, change: Change, observed: Observed) -> bool:
    """Whether all that a change asks for has happened, or is recorded as having happened."""
    scaler = scaler_of(change, observed)
    if scaler is not None and scaler.has_succeeded:
        return True
    if change.leaving:
        return change.committed and all_gone(change.leaving, roster, observed)
    return all_usable(change.joining, observed)


def wanted_replicas(bare: BarePods, roster: Roster, observed: Observed) -> int | None:
    """
    Return the number of replicas that the job's spec should have; None if it stays the same.

    A ScaleIn or ScaleOut that is complete changes the spec, so that autoscalers and people see one number. If
    the number was edited meanwhile, that edit counts, and is the next change.
    """
    change = roster.change
    if change is None or not change.is_by_scaler or bare.replicas != roster.replicas:
        return None
    return roster.replicas + _growth(change) if is_complete(roster, change, observed) else None


def questions(spec: JobSpec, roster: Roster, observed: Observed) -> tuple[Question, ...]:
    """Return which workers to ask whether they are still in use."""
    change, pods = roster.change, observed.workers_by_name
    asked = [one.name for one in roster.drains if not one.after and not one.committed]
    if change is not None and not change.committed:
        asked += change.leaving
    return tuple(
        Question(pod.name, pod.uid, spec.workers.template.main)
        for name in asked
        if (pod := pods.get(name)) is not None and pod.held and not is_gone(pod)
    )


def in_use(change: Change, observed: Observed) -> list[str]:
    """Return what is known of the workers that leave and for which there is no proof, a sentence for each."""
    pods, found = observed.workers_by_name, []
    for name in change.leaving:
        pod = pods.get(name)
        if pod is None or is_gone(pod) or is_idle(pod, observed):
            continue
        answer = observed.answers.get(pod.uid)
        if answer is None or (answer.sessions is None and not answer.problem):
            found.append(f"{name} has not answered whether it is in use")
        elif answer.sessions is None:
            found.append(f"{name} can't be asked whether it is in use: {answer.problem}")
        else:
            found.append(f"{name} is in use by {answer.sessions} command{'s' if answer.sessions > 1 else ''}")
    return found


def scaler_of(change: Change, observed: Observed) -> Scaler | None:
    """Return the ScaleIn or ScaleOut that a change belongs to; None if it is gone, or being deleted."""
    return next((one for one in observed.scalers if one.uid == change.uid and not one.deleting), None)


def _withdrawn(bare: BarePods, roster: Roster, change: Change, observed: Observed) -> str:
    """Return why a change is no longer wanted; empty if it is, or if it can't be undone any more."""
    if change.committed:
        return ""
    if not change.is_by_scaler:
        return "the number of replicas was changed again" if bare.replicas != roster.replicas else ""
    scaler = scaler_of(change, observed)
    if scaler is None:
        return f"{change.source} {change.name} was deleted"
    return f"{change.source} {change.name} has failed" if scaler.is_over and not scaler.has_succeeded else ""


def _completed(bare: BarePods, roster: Roster, change: Change) -> tuple[Roster, Outcome | None]:
    replicas = roster.replicas + (_growth(change) if change.is_by_scaler else 0)
    if change.is_by_scaler and bare.replicas == roster.replicas != replicas:
        # The spec is changed first.
        return roster, None
    without = roster.without(change.leaving)
    # One that was replaced meanwhile has a successor with a higher number than those that join.
    names = tuple(sorted((*without.names, *change.joining), key=worker_number))
    done = replace(without, names=names, replicas=replicas, change=None)
    verb = "added" if change.joining else "removed"
    return done, Outcome(change, succeeded=True, message=f"{verb} {', '.join(change.workers)}")


def _too_late(spec: JobSpec, roster: Roster, change: Change, observed: Observed) -> str:
    """Return why a change has not happened in time."""
    seconds = int((limit_of(change) - change.since).total_seconds())
    if change.joining:
        pods, stuck = observed.workers_by_name, blocked(spec, roster, observed)
        missing = [name for name in change.joining if not is_usable(pods.get(name))]
        why = blocked_text({name: stuck[name] for name in missing if name in stuck})
        return "; ".join([f"after {seconds} s not Ready: {', '.join(missing)}", *why[:SHOWN], "removed again"])
    return f"after {seconds} s still in use, and they stay: {listed(in_use(change, observed))}"


def _growth(change: Change) -> int:
    return len(change.joining) - len(change.leaving)


def is_idle(pod: Pod, observed: Observed) -> bool:
    """Whether no command runs in a worker, as it has answered for some seconds."""
    if pod.phase == "Pending":
        # None of its containers has been started, or they are just being started: it was never used.
        return True
    answer = observed.answers.get(pod.uid)
    return answer is not None and answer.idle_since is not None and answer.at >= answer.idle_since + IDLE_FOR
