"""
What is known about a running command's pod and connection, and whether it is enough for a verdict.

Owns: collecting facts as they come, and the doubt: the short while in which an anomaly waits for what the pod
object has to say. evidence.py weighs; this decides when. No I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpirt.kubeapi.request.channels import ExitedWith
from mpirt.rsh.pod.evidence import Facts, KeeperGone, judge, judge_pod
from mpirt.rsh.session import events

if TYPE_CHECKING:
    from mpirt.kubeapi.request.channels import Status
    from mpirt.rsh.pod.evidence import Verdict
    from mpirt.rsh.pod.facts import Pod
    from mpirt.rsh.pod.liveness import Pace

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

    # fmt: off
    __slots__ = (
        "_first_pod", "_is_deleted", "_is_fine", "_is_read", "_name", "_patience", "_pod", "_reason_by", "_until",
        "api_silent", "can_wait", "closed", "container", "container_start", "keeper_gone", "pace", "status",
    )
    # fmt: on

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
