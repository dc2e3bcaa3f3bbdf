"""
A connection that is lost while a keeper holds the command: when to dial again, and when to give up.

Owns: the three patiences. The pod's own end is evidence.py's; here it is the API server, which is waited for as
long as the keeper waits, and the node, which is given less while the API server answers. No I/O; the clock is
handed in.

Any byte from the pod is an answer of its node. A connection that ends without one and without a status proves
nothing of the node, for or against it: something on the way may have closed it.
"""

from __future__ import annotations

from mpirt.errors import ExitCode, MpirtError, NoPod, NoShell, Refused
from mpirt.kubeapi.request.answers import ApiError, TimedOut
from mpirt.kubeapi.request.channels import Failed
from mpirt.rsh.pod.evidence import Verdict
from mpirt.rsh.protocol.entrance import NotStarted
from mpirt.rsh.session.retry import Next, advice, delay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.kubeapi.request.channels import Status
    from mpirt.rsh.session.holding import Patience

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

    # fmt: off
    __slots__ = (
        "_answer_by", "_api_heard", "_api_since", "_asked_after", "_dial_at", "_dialled", "_failed", "_failed_at",
        "_has_answered", "_heard", "_jitter", "_patience", "_said", "_tries", "_unanswered_since", "how",
        "runs_nothing", "since",
    )
    # fmt: on

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
        self._jitter = jitter
        self._dial_at: float | None = now + _SPREAD_SECONDS * jitter()
        self._answer_by: float | None = None
        self._dialled = now
        self._tries = 0
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
        # Who did not answer in time may be either of them; whether the API server answered others meanwhile tells.
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
        self._tries += 1
        self._said = str(error)
        self.runs_nothing = advice(error).next is Next.WAIT
        asked_at_most = (self._lease_over - now) / _ASKED_PART
        self._dial_at = now + delay(self._tries, error, self._jitter, most=asked_at_most)

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
    Whether the node said it: on v5 the API server opens the connection, and tells so that it can't reach the node.

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
