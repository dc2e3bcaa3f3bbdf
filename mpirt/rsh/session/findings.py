"""
What is known about a running command's pod and connection, and whether it is enough for a verdict.

Owns: collecting facts as they come, and the doubt: the short while in which an anomaly waits for what the pod
object has to say. evidence.py weighs; this decides when. No I/O.
"""

from __future__ import annotations

from mpirt.kubeapi.request.channels import ExitedWith
from mpirt.rsh.session import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpirt.kubeapi.request.channels import Status
    from mpirt.rsh.pod.evidence import Facts, KeeperGone, Verdict
    from mpirt.rsh.pod.facts import Pod
    from mpirt.rsh.pod.liveness import Pace

# One look at the pod; where it takes longer, the API server is part of what is wrong.
LOOK_SECONDS = 3.0
# How the end is called is certain, and only its reason is missing. The kubelet tells that within a second, mostly
# sooner; who waits for us wants to know within one.
KILLED_SECONDS = 0.6
# The keeper is gone, and nothing in the container tells whether this is the next one: an exec into that is faster
# than the kubelet's word on it, most of all after an outage.
GONE_SECONDS = 10.0
_FOR_EVER = float("inf")


class Findings:
    """The facts of one session."""

    __slots__ = (
        "_before",
        "_gone",
        "_is_fine",
        "_keeper_patience",
        "_lost_at",
        "_name",
        "_now",
        "_reason_by",
        "_told",
        "_until",
        "api_silent",
        "can_wait",
        "closed",
        "container",
        "container_start",
        "keeper_gone",
        "pace",
        "status",
    )

    def __init__(self, pod: str, pace: Pace) -> None:
        self.pace = pace
        self.container = ""
        self.container_start = 0
        self.closed = ""
        self.status: Status | None = None
        self.api_silent = ""
        self.keeper_gone: KeeperGone | None = None
        self._keeper_patience = GONE_SECONDS
        # When the last connection to a keeper ended.
        self._lost_at: float | None = None
        self.can_wait = False
        self._name = pod
        self._before: Pod | None = None
        self._now: Pod | None = None
        self._gone = False
        # Whether the pod, as it was seen last, is evidence of nothing whatever the connection does.
        self._is_fine = False
        self._told = False
        self._until: float | None = None
        # When the doubt ends if the pod was read since the loss.
        self._reason_by: float | None = None

    def learn(self, event: events.Event) -> None:
        """What the API server says of the pod, or of itself by its silence."""
        match event:
            case events.PodSeen(pod, is_first):
                self._before = pod if is_first else self._before or pod
                self._now, self._gone, self._told, self.api_silent = pod, False, True, ""
                self._is_fine = False
            case events.PodGone():
                self._gone, self._told, self.api_silent = True, True, ""
            case events.PodHidden():
                self._told, self.api_silent = True, ""
            case events.ApiAnswers():
                self.api_silent = ""
            case events.ApiSilent(why):
                self._told, self.api_silent = True, why

    def lost(self, how: str, status: Status | None, now: float) -> None:
        """The connection to a keeper has ended. The keeper may be found again."""
        self.closed, self.status = how, status
        self._lost_at, self._told = now, False

    def found_again(self) -> None:
        """The keeper has answered on a new connection: nothing of the old one counts."""
        self.closed, self.status, self._until = "", None, None

    def keeper_is_gone(self, container_start: int, now: float) -> None:
        """A container that started then has no such session."""
        from mpirt.rsh.pod.evidence import KeeperGone  # noqa: PLC0415  keepers mostly last

        if not (container_start and self.container_start):
            self.keeper_gone, self._keeper_patience = KeeperGone.UNKNOWN, GONE_SECONDS
        elif container_start == self.container_start:
            # What kills a whole container may end the bridge first.
            is_killed = isinstance(self.status, ExitedWith)
            self.keeper_gone = KeeperGone.ALONE
            self._keeper_patience = LOOK_SECONDS if is_killed else KILLED_SECONDS
        else:
            self.keeper_gone, self._keeper_patience = KeeperGone.WITH_CONTAINER, LOOK_SECONDS
        self.doubt(now)

    def container_has_ended(self, lost_at: float) -> None:
        """The runtime had ended what was in it, and now an exec finds no such container running."""
        from mpirt.rsh.pod.evidence import KeeperGone  # noqa: PLC0415  see keeper_is_gone()

        self.keeper_gone = KeeperGone.CONTAINER_ENDED
        # Its pod may have been replaced, which only the pod itself tells.
        self._until, self._reason_by = lost_at + LOOK_SECONDS, lost_at + KILLED_SECONDS

    @property
    def node(self) -> str:
        """The pod's node, as far as it is known."""
        return "" if self._now is None else self._now.node

    @property
    def used_container(self) -> str:
        """The container that was entered. Its name may be left out only where it is the pod's only one."""
        return self.container or ("" if self._now is None else next(iter(self._now.containers), ""))

    @property
    def doubts(self) -> bool:
        """Whether something looks wrong."""
        return self._until is not None

    @property
    def is_over(self) -> bool:
        """Whether the connection can't carry anything any more."""
        return bool(self.closed) or self.status is not None

    @property
    def wake(self) -> float | None:
        """When the doubt ends, at the latest."""
        return self._until if self._reason_by is None or not self._told else self._reason_by

    def doubt(self, now: float) -> bool:
        """Something looks wrong: from now on wait for news of the pod. False where that is so already."""
        if self.doubts:
            return False
        self._until = now + self._patience
        self._told = False
        return True

    @property
    def _patience(self) -> float:
        if self.keeper_gone is not None:
            return self._keeper_patience
        is_bound = self._lost_at is None
        return KILLED_SECONDS if is_bound and self.status is not None else LOOK_SECONDS

    def trust(self) -> None:
        """It was only silence, and it is over."""
        if not self.is_over:
            self._until = None

    def verdict(self, now: float, silence: float) -> Verdict | None:
        """What is certain by now, if anything."""
        if self._until is None and not self._gone and (self._now is None or self._is_fine):
            return None
        # Commands that are over within a second never get here.
        from mpirt.rsh.pod.evidence import judge, judge_pod  # noqa: PLC0415

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
        is_enough = self._told and self.status is None and self.keeper_gone is None
        if not is_enough and now < ends_at:
            return None
        found = judge(facts)
        if found is None:
            # It was silence that didn't count: we had not listened.
            self._until = None
        return found

    def _facts(self, silence: float, *, can_wait: bool) -> Facts:
        from mpirt.rsh.pod.evidence import Facts  # noqa: PLC0415  see verdict()

        return Facts(
            pod=self._name,
            container=self.container,
            before=self._before,
            now=self._now,
            gone=self._gone,
            silence=silence,
            pace=self.pace,
            closed=self.closed,
            status=self.status,
            keeper_gone=self.keeper_gone,
            can_wait=can_wait,
            api_silent=self.api_silent or ("" if self._told else "it does not answer"),
        )
