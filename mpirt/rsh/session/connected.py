"""
The connections to a keeper, one after the other.

Owns: which one there is, what is asked on it and how it was lost, and the way back. A connection's facts (its
messages, its silence, how it ended) are dropped with it; the command's stay. No I/O.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from mpirt.errors import MpirtError
from mpirt.kubeapi.request.answers import ProtocolRefused
from mpirt.kubeapi.request.channels import V4, V5, Channels, ExitedWith, Status, carries_output
from mpirt.rsh.pod.evidence import exec_end
from mpirt.rsh.pod.liveness import Liveness, Pace
from mpirt.rsh.protocol import conversation
from mpirt.rsh.protocol.entrance import (
    Entrance,
    KeeperFound,
    NoKeeper,
    NoSession,
    NotAnswered,
    NotStarted,
    ToSend,
)
from mpirt.rsh.session import events
from mpirt.rsh.session.machine import Entered, Machine, State, Step
from mpirt.rsh.session.patience import Findings, Reattaching
from mpirt.rsh.session.retry import not_started

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.rsh.protocol.keeperframes import Usage
    from mpirt.rsh.session.task import Task


# Reading /proc takes the keeper a millisecond, of large commands more: those who look share an answer.
USAGE_EVERY = 1.0
# Later the keeper may be gone before it answers.
_HAS_USAGE = (State.GO, State.RUNNING, State.TERMINATING)


class Connected(Machine):
    """A phase that has a keeper to talk to, over one connection after the other."""

    def __init__(
        self,
        task: Task,
        channels: Channels | None,
        entered: Entered,
        *,
        now: float,
        jitter: Callable[[], float],
        talk: conversation.Conversation | None = None,
    ) -> None:
        """Without `talk` nothing was said before; with it there are no `channels` yet."""
        super().__init__(task, State.GO, watching=entered.watching)
        self._jitter = jitter
        self._protocol = entered.protocol
        self._nonce = entered.nonce
        self._talk = talk or conversation.Conversation()
        self._channels = channels
        self._entrance: Entrance | None = None
        self._reattaching: Reattaching | None = None
        self._findings = Findings(task.pod, self._pace)
        self._findings.container = entered.container
        self._liveness = Liveness(now, self._pace)
        # What was reported before the command is no evidence about its pod.
        self._watch_at = now if entered.watching else now + task.watch_after
        self._asked_api = False
        self._is_listening = True
        self._api_heard: float | None = None
        self._was_started = False
        self._can_attach = task.holding.patience.lease > 0
        self._usage_asked = now - USAGE_EVERY
        self._awaits_usage = False

    @property
    def wake(self) -> float:
        """When to hand in a Tick, at the latest."""
        moments = [self._findings.wake, self._watch_at]
        if self._reattaching is None:
            moments.append(self._liveness.wake)
            moments.append(self._liveness.last + self._asked_after if self._asks_api else None)
        elif self._can_attach:
            moments.append(self._reattaching.wake)
        return min([moment for moment in moments if moment is not None])

    @property
    def _pace(self) -> Pace:
        pace, seldom = self._task.pace, self._task.holding.ask_every
        return pace if seldom is None else pace.slower(seldom())

    @property
    def _asked_after(self) -> float:
        """The API server is asked when a sign of life is missing for so long."""
        return self._findings.pace.overdue_after + 1

    is_held = True

    @property
    def node(self) -> str:
        """The pod's node, as far as it is known."""
        return self._findings.node

    @property
    def container(self) -> str:
        """The container that was entered, as far as its name is known."""
        return self._findings.used_container

    def silence(self, now: float) -> float | None:
        """Seconds since the last sign of life from the pod; None where only another process has heard any."""
        if not self._is_attached and not self._was_started:
            return None
        return self._liveness.silence(now)

    @property
    def awaits_usage(self) -> bool:
        """Whether the keeper was asked for it, and may still answer."""
        return self._awaits_usage and self._is_listening and self.state in _HAS_USAGE

    @property
    def _is_attached(self) -> bool:
        return self._reattaching is None

    @abstractmethod
    def _take(self, fact: conversation.Fact, now: float) -> None:
        """What follows from a word of the keeper's."""

    @abstractmethod
    def _go_on(self) -> None:
        """The keeper is there, and the command was started: go on from GO."""

    @abstractmethod
    def _over(self, how: str, now: float, status: Status | None) -> None:
        """The connection has ended, as the command had before."""

    # The connection that there is

    def _greet_keeper(self, now: float) -> None:
        self._liveness = Liveness(now, self._pace)
        self._asked_api = False
        self._is_listening = True
        self._tell(self._talk.connect())

    def _received(self, message: bytes, now: float) -> None:
        if self._reattaching is not None and carries_output(message):
            self._reattaching.heard()
        if self._entrance is not None:
            self._enter(self._entrance, message, now)
        elif self._channels is not None:
            part = self._channels.receive(message)
            if isinstance(part, Status):
                self._lost(exec_end(part), now, status=part)
            elif part is not None and part.stream == 1:
                self._listen(part.data, now)

    def _listen(self, data: bytes, now: float) -> None:
        self._liveness.heard(now)
        self._asked_api = False
        for fact in self._talk.receive(data):
            self._take(fact, now)

    def _listening(self, now: float, *, listening: bool) -> None:
        """Whether what the keeper says is read. Its silence says nothing while it is not."""
        self._liveness.listen(now, listening=listening)
        self._asked_api = False
        self._is_listening = listening

    @property
    def _asks_api(self) -> bool:
        """Whether silence is still to be answered by a question to the API server."""
        return self._is_listening and not self._asked_api

    def _of_the_connection(self, event: events.Event, now: float) -> None:
        match event:
            case events.Closed(how):
                self._lost(how or "it ended without a word", now)
            case events.Opened():
                self._opened(now)
            case events.NotOpened(error):
                self._not_attached(error, now)
            case events.UsageWanted():
                self._ask_usage(now)

    def _learn(self, event: events.Event, now: float) -> None:
        self._findings.learn(event)
        match event:
            case events.ApiAnswers() | events.PodSeen() | events.PodGone() | events.PodHidden():
                self._api_heard = now
                if self._reattaching is not None:
                    self._reattaching.api_answers(now)
            case events.ApiSilent():
                self._api_heard = None
                if self._reattaching is not None:
                    self._reattaching.api_silent()

    def _lost(self, how: str, now: float, *, status: Status | None = None) -> None:
        if self.state is State.EXITED:
            self._over(how, now, status)
            return
        if self._reattaching is not None:
            line = f"the connection to pod {self._task.pod} ended before its keeper answered: {how}"
            self._not_attached(NotStarted(line), now, status=status, has_failed=status is not None)
            return
        self._drop_connection()
        self._actions.append(events.Note(f"the connection is lost: {how}"))
        self._findings.lost(how, status)
        self._step(Step.LOSE)
        self._reattaching = Reattaching(
            how,
            now,
            heard=self._liveness.last,
            is_silent=self._liveness.silence(now) >= self._asked_after,
            api_heard=self._api_heard,
            asked_after=self._asked_after,
            patience=self._task.holding.patience,
            jitter=self._jitter,
        )
        if not self._can_attach:
            self._findings.doubt(now)
        self._look()

    def _drop_connection(self) -> None:
        self._talk.disconnect()
        self._channels = self._entrance = self.usage = self.usage_measured = None
        self._awaits_usage = False
        self._actions.append(events.HangUp())

    def _opened(self, now: float) -> None:
        if self._reattaching is not None:
            self._reattaching.opened(now)
            self._entrance = Entrance(self._nonce, self._task.holding.keepers, attach=True)
            self._tell(self._entrance.greeting())

    def _enter(self, entrance: Entrance, message: bytes, now: float) -> None:
        match entrance.receive(message):
            case ToSend(data):
                self._tell(data)
            case KeeperFound(leftover):
                self._channels, self._entrance = entrance.channels, None
                self._greet_keeper(now)
                self._listen(leftover, now)
            case NoSession(container_start):
                self._drop_connection()
                self._can_attach = False
                self._findings.keeper_is_gone(container_start, now)
                self._look()
            case NoKeeper(why):
                self._not_attached(NotStarted(f"pod {self._task.pod}: {why}"), now)
            case None:
                pass
            case status:
                self._not_attached(not_started(self.pod, status, ""), now, status=status)

    def _not_attached(
        self, error: MpirtError, now: float, *, status: Status | None = None, has_failed: bool = True
    ) -> None:
        """An attempt to come back has failed, or its connection has ended; what was said of the exec."""
        if self._reattaching is None:
            return
        if isinstance(error, ProtocolRefused):
            self._protocol = V5 if self._protocol == V4 else V4
        self._drop_connection()
        self._actions.append(events.Note(f"the keeper was not reached: {error}"))
        if has_failed:
            self._reattaching.failed(error, now, status)
        else:
            self._reattaching.ended(error, now)
        if isinstance(self._findings.status, ExitedWith) and self._reattaching.runs_nothing:
            # The runtime has ended what we had there, and the kubelet has no such container running: it is dead.
            self._can_attach = False
            self._findings.container_has_ended(self._reattaching.since)

    def _attached(self, now: float) -> None:
        self._reattaching = None
        self._findings.found_again()
        self._liveness.heard(now)
        self._step(Step.ATTACH)
        if self._was_started:
            self._go_on()

    # What `mpirt ps` shows

    def _ask_usage(self, now: float) -> None:
        if self._is_attached and self.state in _HAS_USAGE and now - self._usage_asked >= USAGE_EVERY:
            self._usage_asked, self._awaits_usage = now, True
            self._tell(self._talk.ask_usage())

    def _used(self, usage: Usage | None, now: float) -> None:
        self.usage, self._awaits_usage = usage, False
        self.usage_measured = self._usage_asked, now

    # Time

    def _tick(self, now: float) -> None:
        self._watch_in_time(now)
        if self._reattaching is None:
            self._ask(now)
        else:
            self._reattach(self._reattaching, now)

    def _ask(self, now: float) -> None:
        if self._task.holding.ask_every is not None:
            self._findings.pace = pace = self._pace
            self._liveness.change_pace(pace)
        if self._liveness.tick(now):
            self._tell(self._talk.beat())
        if self._liveness.is_dead(now):
            self._lost(f"nothing came for {self._liveness.silence(now):.0f} s", now)
        elif self._asks_api and self._liveness.silence(now) >= self._asked_after:
            self._asked_api = True
            self._look()

    def _reattach(self, reattaching: Reattaching, now: float) -> None:
        if reattaching.is_overdue(now):
            self._not_attached(NotAnswered(f"no keeper in pod {self._task.pod} answered"), now)
        times = reattaching.dial(now) if self._can_attach else None
        if times is not None:
            # Whether the API server answers others meanwhile shows whose silence it is.
            self._look()
            self._actions.append(events.Dial(self._protocol, self._findings.container, *times))
