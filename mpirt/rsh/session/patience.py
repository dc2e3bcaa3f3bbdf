"""
How long a running command is waited for when something is wrong: the doubt, and the three patiences.

Owns: the facts for a verdict as they come, and the doubt: the short while in which an anomaly waits for what the
pod object has to say (evidence.py weighs; this decides when). And of a connection that is lost while a keeper
holds the command: when to dial again, and when to give up. The API server is waited for as long as the keeper
waits, and the node is given less while the API server answers. No I/O; the clock is handed in.

Any byte from the pod is an answer of its node. A connection that ends without one and without a status proves
nothing of the node, for or against it: something on the way may have closed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpirt.errors import ExitCode, MpirtError, NoPod, NoShell, Refused
from mpirt.kubeapi.request.answers import ApiError, TimedOut
from mpirt.kubeapi.request.channels import ExitedWith, Failed
from mpirt.rsh.pod.evidence import Facts, KeeperGone, Verdict, judge, judge_pod
from mpirt.rsh.protocol.entrance import NotStarted
from mpirt.rsh.session import events
from mpirt.rsh.session.retry import Next, advice, asked_delay, backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.kubeapi.request.channels import Status
    from mpirt.rsh.pod.facts import Pod
    from mpirt.rsh.pod.liveness import Pace
    from mpirt.rsh.session.task import Patience

# One look at the pod; where it takes longer, the API server is part of what is wrong.
LOOK_SECONDS = 3.0
# The exit code is certain, and only its reason is missing. The kubelet reports that within a second, mostly
# sooner, and a launcher wants to know within one.
KILLED_SECONDS = 0.6
# The keeper is gone, and nothing in the container shows whether this is the next one: an exec into that is faster
# than the kubelet's word on it, most of all after an outage.
GONE_SECONDS = 10.0
_FOR_EVER = float("inf")


class Findings:
    """The facts of one session."""

    def __init__(self, pod: str, pace: Pace) -> None:
        self.pace = pace
        self.container = ""
        self.container_start = 0
        self.closed = ""
        self.status: Status | None = None
        self.api_silent = ""
        self.keeper_gone: KeeperGone | None = None
        self.can_wait = False
        self._name = pod
        self._first_pod: Pod | None = None
        self._pod: Pod | None = None
        self._is_deleted = False
        # Whether the pod, as it was seen last, is evidence of nothing whatever the connection does.
        self._is_fine = False
        # Whether the API server has answered since the doubt began.
        self._is_read = False
        self._patience = LOOK_SECONDS
        self._until: float | None = None
        # When the doubt ends if the pod was read since the loss.
        self._reason_by: float | None = None

    def learn(self, event: events.Event) -> None:
        """What the API server says of the pod, or of itself by its silence."""
        match event:
            case events.PodSeen(pod, is_first):
                self._first_pod = pod if is_first else self._first_pod or pod
                self._pod, self._is_deleted, self._is_read, self.api_silent = pod, False, True, ""
                self._is_fine = False
            case events.PodGone():
                self._is_deleted, self._is_read, self.api_silent = True, True, ""
            case events.PodHidden():
                self._is_read, self.api_silent = True, ""
            case events.ApiAnswers():
                self.api_silent = ""
            case events.ApiSilent(why):
                self._is_read, self.api_silent = True, why

    def lost(self, how: str, status: Status | None) -> None:
        """The connection to a keeper has ended. The keeper may be found again."""
        self.closed, self.status, self._is_read = how, status, False

    def found_again(self) -> None:
        """The keeper has answered on a new connection: nothing of the old one counts."""
        self.closed, self.status, self._until = "", None, None

    def keeper_is_gone(self, container_start: int, now: float) -> None:
        """A container that started then has no such session."""
        if not (container_start and self.container_start):
            self.keeper_gone, self._patience = KeeperGone.UNKNOWN, GONE_SECONDS
        elif container_start == self.container_start:
            # What kills a whole container may end the bridge first.
            is_killed = isinstance(self.status, ExitedWith)
            self.keeper_gone = KeeperGone.ALONE
            self._patience = LOOK_SECONDS if is_killed else KILLED_SECONDS
        else:
            self.keeper_gone, self._patience = KeeperGone.WITH_CONTAINER, LOOK_SECONDS
        self.doubt(now)

    def container_has_ended(self, lost_at: float) -> None:
        """The runtime had ended what was in it, and now an exec finds no such container running."""
        self.keeper_gone = KeeperGone.CONTAINER_ENDED
        # Its pod may have been replaced, which only the pod itself shows.
        self._until, self._reason_by = lost_at + LOOK_SECONDS, lost_at + KILLED_SECONDS

    @property
    def node(self) -> str:
        """The pod's node, as far as it is known."""
        return "" if self._pod is None else self._pod.node

    @property
    def used_container(self) -> str:
        """The container that was entered. Its name may be left out only where it is the pod's only one."""
        return self.container or ("" if self._pod is None else next(iter(self._pod.containers), ""))

    @property
    def wake(self) -> float | None:
        """When the doubt ends, at the latest."""
        return self._until if self._reason_by is None or not self._is_read else self._reason_by

    def doubt(self, now: float) -> None:
        """Something looks wrong: from now on wait for news of the pod."""
        self._until = now + self._patience
        self._is_read = False

    def verdict(self, now: float, silence: float) -> Verdict | None:
        """What is certain by now, if anything."""
        if self._until is None and not self._is_deleted and (self._pod is None or self._is_fine):
            return None
        facts = self._facts(silence, can_wait=self.can_wait)
        found = judge_pod(facts)
        if found is not None:
            return found
        # If it is the same at any silence, it need not be weighed again at each beat.
        self._is_fine = judge_pod(self._facts(_FOR_EVER, can_wait=False)) is None
        ends_at = self.wake
        if ends_at is None:
            return None
        # A kubelet's word takes a moment: the pod as it was before the end proves nothing about a process's end.
        is_enough = self._is_read and self.status is None and self.keeper_gone is None
        return judge(facts) if is_enough or now >= ends_at else None

    def _facts(self, silence: float, *, can_wait: bool) -> Facts:
        return Facts(
            pod=self._name,
            container=self.container,
            first=self._first_pod,
            last=self._pod,
            gone=self._is_deleted,
            silence=silence,
            pace=self.pace,
            closed=self.closed,
            status=self.status,
            keeper_gone=self.keeper_gone,
            can_wait=can_wait,
            api_silent=self.api_silent or ("" if self._is_read else "it does not answer"),
        )


# An attempt must not outlast the patience with a node by much.
DIAL_SECONDS = 10.0
# From the opened connection to the keeper's word.
ANSWER_SECONDS = 10.0
# Agents lose their connections together; they need not come back in the same millisecond.
_SPREAD_SECONDS = 0.2
# An API server that asks for time may be back at once: of what is left of the lease it gets a part.
_ASKED_PART = 4
# An attempt is over by then, and the next one's too: an older failure is one before we were stopped ourselves.
_STALE_SECONDS = DIAL_SECONDS + ANSWER_SECONDS + 10.0
# The API server's own troubles, not the node's.
_OWN_STATUSES = frozenset({401, 403, 429, 502, 503, 504})
# A kubelet's word on a runtime that it can't reach.
_UNAVAILABLE = "rpc error: code = Unavailable"
# How an API server says that a node does not answer: before the connection is opened, and afterwards on v5.
_UNREACHED = ("error dialing backend", "error sending request")


class Reattaching:
    """The attempts to find the keeper again, of one loss."""

    def __init__(
        self,
        how: str,
        now: float,
        *,
        heard: float,
        is_silent: bool,
        api_heard: float | None,
        asked_after: float,
        patience: Patience,
        jitter: Callable[[], float],
    ) -> None:
        """
        `heard`: when the last sign of life came, and `is_silent` if questions were left unanswered since then;
        `api_heard`: when the API server was heard, if it was.

        `asked_after`: how much silence there is before it is asked. Its answer speaks for the time before it.
        """
        self.how = how
        self.since = now
        self.runs_nothing = False
        """Whether the last attempt found that there is no such container running."""
        self._heard, self._asked_after = heard, asked_after
        self._patience = patience
        self._backoff = backoff(jitter)
        self._dial_at: float | None = now + _SPREAD_SECONDS * jitter()
        self._answer_by: float | None = None
        self._dialled = now
        self._failed = False
        self._failed_at = now
        self._has_answered = False
        self._said = ""
        # Since when the node fails to answer.
        self._unanswered_since = heard if is_silent else None
        # What it said before the silence says nothing of the time since.
        self._api_since = api_heard if api_heard is not None and api_heard > heard else None
        self._api_heard = now

    @property
    def wake(self) -> float:
        """When to tick next, at the latest."""
        moments = (self._lease_over, self._node_given_up, self._dial_at, self._answer_by)
        return min(moment for moment in moments if moment is not None)

    def dial(self, now: float) -> tuple[float, float] | None:
        """For how many seconds to dial now, and to wait for credentials before; None where it is not time."""
        self._forget_what_is_stale(now)
        if self._dial_at is None or now < self._dial_at:
            return None
        self._dial_at, self._dialled, self._has_answered = None, now, False
        return DIAL_SECONDS, self._lease_over - now

    def opened(self, now: float) -> None:
        """The way is open: from now on the keeper's word is awaited."""
        self._answer_by = now + ANSWER_SECONDS
        # Nothing is known against the node until this attempt has failed, too.
        self._failed = False

    def heard(self) -> None:
        """A byte has come from the pod."""
        self._has_answered = True

    def is_overdue(self, now: float) -> bool:
        """Whether the keeper's word has not come in time."""
        return self._answer_by is not None and now >= self._answer_by

    def ended(self, error: MpirtError, now: float) -> None:
        """The connection of an attempt has ended, without a status."""
        if self._has_answered:
            self.failed(error, now)
        else:
            self._dial_again(error, now)

    def failed(self, error: MpirtError, now: float, status: Status | None = None) -> None:
        """An attempt has failed; a `status` may be the node's own answer."""
        self._dial_again(error, now)
        answered = self._has_answered or (status is not None and _is_from_node(status))
        # Either may have failed to answer in time; whether the API server answered others meanwhile decides.
        is_silent = isinstance(error, TimedOut) and self._api_heard < self._dialled
        self._failed = not (answered or is_silent or _is_the_servers(error) or _is_the_runtimes(error))
        self._failed_at = now
        if not self._failed:
            self._api_since = self._unanswered_since = None
            return
        self._api_since = now if self._api_since is None else self._api_since
        if self._unanswered_since is None:
            self._unanswered_since = self._dialled

    def _dial_again(self, error: MpirtError, now: float) -> None:
        self._forget_what_is_stale(now)
        self._answer_by = None
        self._said = str(error)
        self.runs_nothing = advice(error).next is Next.WAIT
        most = (self._lease_over - now) / _ASKED_PART
        self._dial_at = now + self._backoff.next(asked_delay(error), most=most)

    def api_answers(self, now: float) -> None:
        """The API server can be heard."""
        self._api_heard = now
        if self._api_since is None:
            self._api_since = now

    def api_silent(self) -> None:
        """It can't."""
        self._api_since = None

    def verdict(self, now: float, pod: str, node: str) -> Verdict | None:
        """Whether there is no more use in waiting."""
        said = f"; {self._said}" if self._said else ""
        if now >= self._lease_over:
            return Verdict(
                ExitCode.CONNECTION_LOST,
                f"the connection to pod {pod} was lost ({self.how}) and did not come back within the lease of "
                f"{self._patience.lease:.0f} s, after which the command is ended there{said}",
            )
        given_up = self._node_given_up
        if given_up is None or now < given_up:
            return None
        silent = now - given_up + self._patience.node
        where = f"node {node}" if node else "the node"
        cause = f"{where} of pod {pod} has not answered for {silent:.0f} s, while the API server does{said}"
        return Verdict(ExitCode.NODE_LOST, cause)

    def _forget_what_is_stale(self, now: float) -> None:
        if self._failed and now - self._failed_at > _STALE_SECONDS:
            self._failed, self._api_since, self._unanswered_since = False, None, None

    @property
    def _lease_over(self) -> float:
        return self._heard + self._patience.lease

    @property
    def _node_given_up(self) -> float | None:
        """When it is: it failed to answer, and the API server answered, from beginning to end of its patience."""
        if self._unanswered_since is None or self._api_since is None or not self._failed:
            return None
        return max(self._unanswered_since, self._api_since - self._asked_after) + self._patience.node


def _is_from_node(status: Status) -> bool:
    """
    Whether the node said it. On v5 the API server opens the connection, and reports if it can't reach the node.

    A runtime on its way down reports success for an exec that has not ended.
    """
    return not (isinstance(status, Failed) and any(text in status.message for text in _UNREACHED))


def _is_the_runtimes(error: MpirtError) -> bool:
    """Whether the node has answered for a runtime that is away: what runs there goes on meanwhile."""
    return isinstance(error, ApiError) and _UNAVAILABLE in error.failure.message


def _is_the_servers(error: MpirtError) -> bool:
    """Whether an attempt failed before the node had anything to do with it."""
    if isinstance(error, ApiError):
        is_own = error.failure.status in _OWN_STATUSES
        return is_own and "error dialing backend" not in error.failure.message
    return not isinstance(error, NotStarted | NoShell | NoPod | TimedOut) or isinstance(error, Refused)
