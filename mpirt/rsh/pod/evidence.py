"""
Is the command still alive, and if not, what happened to it?

Owns: the one function that weighs what is known about a session, and the words for what it finds. No I/O, no
clock: the silence is handed in.

The order is the point. What the API server says about the pod comes first, because it names the cause: deleted,
evicted, died, node lost. Then what has become of the keeper, what the runtime said of the exec's process, and how
the connection ended. Each names what is proven and no more, and nothing here is ever code 0.
"""

from __future__ import annotations

from enum import Enum

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.channels import ExitedWith, Failed, Status
from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.pod.liveness import DEFAULT_PACE, Pace
from mpirt.values import Value

_SIGNALLED = 128


class KeeperGone(Enum):
    """There is no such session any more; what became of the keeper's container."""

    ALONE = "it lives"
    WITH_CONTAINER = "this is the next one"
    CONTAINER_ENDED = "it does not run any more"
    UNKNOWN = "this may be the next one"


class Facts(Value):
    """All that is known about a session whose command has been started and has not reported its end."""

    pod: str
    container: str = ""
    first: Pod | None = None
    """The pod as it was first seen."""
    last: Pod | None = None
    """As it was last seen."""
    gone: bool = False
    """There is no pod of that name."""
    silence: float = 0.0
    """Seconds without a sign of life from the pod's side."""
    pace: Pace = DEFAULT_PACE
    """How many of them are too many."""
    closed: str = ""
    """How the connection ended; empty while it stands."""
    status: Status | None = None
    """What the server said at the end."""
    keeper_gone: KeeperGone | None = None
    can_wait: bool = False
    """Whether the keeper may be found again: then a node out of reach is judged by patience.py's patience."""
    api_silent: str = ""
    """Why the API server can't be heard; empty where it can, or wasn't asked."""


class Verdict(Value):
    """What happened. A command that is `leaving` still runs, and can be ended in order; another one can't."""

    code: int
    cause: str
    leaving: bool = False
    grace: float | None = None
    """How many seconds a leaving one has, from when its pod was seen to leave; None where the pod does not say."""


def judge(facts: Facts) -> Verdict | None:
    """The verdict on a session; None while nothing says that the command is not running."""
    return judge_pod(facts) or _by_keeper(facts) or _by_status(facts) or _by_connection(facts)


def judge_pod(facts: Facts) -> Verdict | None:
    """The verdict as far as it needs nothing but what is known of the pod; it can be reached at any time."""
    name, last, first = facts.pod, facts.last, facts.first
    if facts.gone:
        return Verdict(ExitCode.POD_DELETED, f"pod {name} was deleted")
    if last is None:
        return None
    if first is not None and first.uid != last.uid:
        return Verdict(ExitCode.POD_DELETED, f"pod {name} was deleted, and another one has its name now")
    return (
        _by_end(facts, last)
        or _by_container(facts, first, last)
        or _by_departure(facts, last)
        or _by_node(facts, last)
    )


def exec_end(status: Status) -> str:
    """How the connection of a running command ended, by the status that came last."""
    match status:
        case ExitedWith(code):
            return f"the exec's process ended with {_in_words(code)}"
        case Failed(reason, message):
            return message or reason or "no reason given"
    return "the server reported success before the command's end"


def _in_words(code: int) -> str:
    return f"code {code}, signal {code - _SIGNALLED}" if code > _SIGNALLED else f"code {code}"


def _by_end(facts: Facts, last: Pod) -> Verdict | None:
    if not last.has_ended:
        return None
    if last.reason == "Evicted":
        return Verdict(ExitCode.EVICTED, f"pod {facts.pod} was evicted from node {last.node}")
    if last.disruption:
        return Verdict(ExitCode.EVICTED, f"pod {facts.pod} was removed from node {last.node} ({last.disruption})")
    why = last.reason or last.container(facts.container).ended
    how = f"{last.phase}{f' ({why})' if why else ''}"
    if last.restarts and not last.reason and not last.deleting:
        # Only its node ends such a pod. Newer kubelets write the containers' own ends over the reason.
        cause = f"pod {facts.pod} was evicted from node {last.node}, or the node is shutting down: {how}"
        return Verdict(ExitCode.EVICTED, cause)
    return Verdict(ExitCode.CONTAINER_DIED, f"pod {facts.pod} has ended: {how}")


def _by_container(facts: Facts, first: Pod | None, last: Pod) -> Verdict | None:
    # An exec may be faster than the kubelet's word on the container that it entered.
    if not _is_out_of_touch(facts):
        return None
    current = last.container(facts.container)
    why = f" ({current.ended})" if current.ended else ""
    if current.has_ended:
        return Verdict(ExitCode.CONTAINER_DIED, f"the container of pod {facts.pod} has ended{why}")
    entered = first.container(facts.container) if first is not None else current
    replaced = entered.identity and current.identity and entered.identity != current.identity
    if replaced or current.restarts > entered.restarts:
        return Verdict(ExitCode.CONTAINER_DIED, f"the container of pod {facts.pod} was restarted{why}")
    return None


def _by_departure(facts: Facts, last: Pod) -> Verdict | None:
    # A pod on a lost node is marked for deletion after a while; it can't be ended in order, nor is that the cause.
    if not last.deleting or (last.cut_off and _is_out_of_touch(facts)):
        return None
    if last.disruption:
        cause = f"pod {facts.pod} is being evicted ({last.disruption})"
        return Verdict(ExitCode.EVICTED, cause, leaving=True, grace=last.grace)
    return Verdict(ExitCode.POD_DELETED, f"pod {facts.pod} is being deleted", leaving=True, grace=last.grace)


def _by_node(facts: Facts, last: Pod) -> Verdict | None:
    if last.cut_off and _is_out_of_touch(facts) and not facts.can_wait:
        return Verdict(
            ExitCode.NODE_LOST, f"node {last.node} of pod {facts.pod} is lost: the cluster can't hear it"
        )
    return None


def _is_out_of_touch(facts: Facts) -> bool:
    # Pods seem cut off for a moment at other times too; one question that was not answered at once must agree.
    return bool(facts.closed) or facts.status is not None or facts.silence > facts.pace.overdue_after


def _by_status(facts: Facts) -> Verdict | None:
    match facts.status:
        case None:
            return None
        case ExitedWith(code):
            cause = f"something in pod {facts.pod} ended the command from outside ({_in_words(code)})"
            return Verdict(code, cause)
        case Failed() as failed:
            cause = f"the command in pod {facts.pod} was cut off: {exec_end(failed)}"
            return Verdict(ExitCode.CONNECTION_LOST, cause)
    cause = f"the command in pod {facts.pod} was cut off: the server reports success, the command itself nothing"
    return Verdict(ExitCode.UNKNOWN_END, cause)


def _by_keeper(facts: Facts) -> Verdict | None:
    if facts.keeper_gone is KeeperGone.WITH_CONTAINER:
        return Verdict(ExitCode.CONTAINER_DIED, f"the container of pod {facts.pod} was restarted")
    if facts.keeper_gone is KeeperGone.CONTAINER_ENDED:
        return Verdict(ExitCode.CONTAINER_DIED, f"the container of pod {facts.pod} has ended")
    # A code of the runtime says more: what ended the bridge has ended the keeper, too.
    if facts.keeper_gone is None or isinstance(facts.status, ExitedWith):
        return None
    cause = f"the keeper of the command in pod {facts.pod} is gone: something has killed it, or its lease was over"
    return Verdict(ExitCode.UNKNOWN_END, cause)


def _by_connection(facts: Facts) -> Verdict | None:
    if facts.closed:
        server = f"; the API server can't be reached: {facts.api_silent}" if facts.api_silent else ""
        cause = f"the connection to pod {facts.pod} was lost: {facts.closed}{server}"
        return Verdict(ExitCode.CONNECTION_LOST, cause)
    return None
