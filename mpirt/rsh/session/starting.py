"""
Everything before GO: from the first dial to the wrapper's HELLO, as often as it takes.

Owns: when to dial, with which sub-protocol and for which container, and when to give up. No I/O. All of it may
be repeated without harm, because a wrapper that gets no GO starts nothing.
"""

from __future__ import annotations

from mpirt.errors import ConfigError, MpirtError, NoPod
from mpirt.kubeapi.request.channels import V4
from mpirt.rsh.pod.liveness import DEFAULT_PACE, Pace
from mpirt.rsh.protocol.entrance import NotAnswered, NotStarted
from mpirt.rsh.session import events
from mpirt.rsh.session.ending import Grace
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mpirt.rsh.invocation.order import Order
    from mpirt.rsh.pod.facts import Container, Pod
    from mpirt.rsh.session.holding import Holding
    from mpirt.rsh.session.retry import Attempts

# One attempt; a second address, or a second try, may do better than a first that hangs.
_DIAL_SECONDS = 15.0
# From the end of a dial's time to its error.
_LAST_WORD_SECONDS = 0.5
# A runtime under load takes a few seconds to start a shell.
_HELLO_SECONDS = 15.0
# A watch of its own costs a command more than the command.
WATCH_AFTER = 1.0
# How often news of the pod may bring the next attempt forward.
_HASTENED_EVERY = 5.0


class Task(Value):
    """What a session is to do."""

    pod: str
    order: Order
    container: str = ""
    """Empty: the only one, or what the pod names as its default, or the first."""
    connect_seconds: float = 60.0
    attempts: int = 0
    """How many there may be; 0 is as many as fit into the time."""
    protocol: str = V4
    """The one to begin with; the other one follows where it is refused."""
    holding: Holding | None = None
    """How a keeper is to hold the command; without it the command ends with its connection."""
    grace: Grace = Grace()
    pace: Pace = DEFAULT_PACE
    host: str = ""
    """The host name or address that was given, where it is not the pod's name."""
    watch_after: float = WATCH_AFTER
    """Seconds after its start from which on the pod is watched. Most commands are over before."""

    def in_pod(self, pod: str) -> Task:
        """The same in the pod that was found by what was taken for a pod's name."""
        return Task(
            pod,
            self.order,
            container=self.container,
            connect_seconds=self.connect_seconds,
            attempts=self.attempts,
            protocol=self.protocol,
            holding=self.holding,
            grace=self.grace,
            pace=self.pace,
            host=self.pod,
            watch_after=self.watch_after,
        )


class Starting:
    """The attempts to have a shell in the pod say HELLO. Where a method raises, it is over."""

    __slots__ = (
        "_attempts", "_begun", "_choosing", "_deadline", "_dial_at", "_hastened_at", "_hello_by", "_is_dialling",
        "_jitter", "_opened", "_seen", "_task", "_waits_for", "container",
    )  # fmt: skip

    def __init__(self, task: Task, *, now: float, jitter: Callable[[], float]) -> None:
        self.container = task.container
        self._task, self._jitter = task, jitter
        self._begun, self._deadline = now, now + task.connect_seconds
        self._attempts: Attempts | None = None
        self._dial_at: float | None = now
        self._hello_by: float | None = None
        self._opened = now
        self._choosing = self._is_dialling = False
        self._waits_for = ""
        self._seen: Container | None = None
        self._hastened_at = now - _HASTENED_EVERY

    def pod_found(self, task: Task) -> None:
        """The pod has another name."""
        self._task = task

    @property
    def wake(self) -> float:
        """When to tick next, at the latest."""
        moments = (self._dial_at if not self._choosing else None, self._hello_by, self._ends_at)
        return min(moment for moment in moments if moment is not None)

    @property
    def _ends_at(self) -> float:
        """When it is over without another word: a dial that is under way has its time, and says what was wrong."""
        return self._deadline + (_LAST_WORD_SECONDS if self._is_dialling else 0.0)

    def overdue(self, now: float) -> MpirtError | None:
        """The error of a shell that has not answered in time."""
        if self._hello_by is None or now < self._hello_by:
            return None
        # A dial may take a little longer than it may: it opens when the time is over.
        waited = max(self._hello_by - self._opened, 0)
        return NotAnswered(f"no shell in pod {self._task.pod} answered for {waited:.0f} s")

    def dial(self, now: float) -> list[events.Action]:
        """Dial, when it is time."""
        if self._hello_by is None and now >= self._ends_at:
            raise self._out_of_time(now)
        if self._choosing or self._dial_at is None or now < self._dial_at:
            return []
        self._dial_at = None
        self._is_dialling = True
        left = self._deadline - now
        protocol = self._task.protocol if self._attempts is None else self._attempts.protocol
        return [events.Dial(protocol, self.container, min(_DIAL_SECONDS, left), credentials_seconds=left)]

    def opened(self, now: float) -> None:
        """The connection is there: from now on the answer of the shell at its other end is awaited."""
        self._opened, self._is_dialling = now, False
        if self._attempts is not None:
            self._attempts.opened(now)
        self._hello_by = min(now + _HELLO_SECONDS, self._deadline)

    def failed(self, error: MpirtError, now: float) -> bool:
        """The attempt has failed. Whether the pod is worth a look until the next."""
        from mpirt.rsh.session.retry import GiveUp  # noqa: PLC0415  most commands start at the first attempt

        self._hello_by, self._is_dialling = None, False
        self._attempts = self._attempts or self._first_attempt()
        plan = self._attempts.failed(error, now)
        if isinstance(plan, GiveUp):
            raise self._with_reason(plan.error)
        self._dial_at, self._choosing = plan.at, plan.choose
        return plan.look

    def _first_attempt(self) -> Attempts:
        from mpirt.rsh.session.retry import Attempts  # noqa: PLC0415  see failed()

        task = self._task
        attempts = Attempts(
            self._begun, task.connect_seconds, limit=task.attempts, protocol=task.protocol, jitter=self._jitter
        )
        attempts.opened(self._opened)
        return attempts

    def pod_seen(self, pod: Pod, now: float) -> list[events.Action]:
        """The pod, while it is waited for."""
        if self._dial_at is None:
            return []
        if pod.has_ended:
            raise NoPod(f"pod {self._task.pod} has ended: {pod.phase}{f' ({pod.reason})' if pod.reason else ''}")
        if self._choosing:
            # Most pods have one container, or a default.
            from mpirt.rsh.pod.facts import choose_container  # noqa: PLC0415

            self._choosing = False
            self.container, told = choose_container(pod, self._task.container)
            return [events.Say(f"pod {self._task.pod}: {told}")] if told else []
        before, self._seen = self._seen, pod.container(self.container)
        if not self._seen.running:
            self._waits_for = pod.waits_for
        # One that ran already, as the pod has it, when the attempt failed runs no better now. And one that is
        # another at every look keeps its pauses: it crashes, or two API servers don't agree on it.
        elif self._seen != before and now >= self._hastened_at + _HASTENED_EVERY:
            self._dial_at, self._hastened_at = min(self._dial_at, now), now
        return []

    def pod_not_told(self, why: str) -> None:
        """The pod can't be looked at, and that won't change: silence of the API server may."""
        if self._choosing:
            from mpirt.rsh.pod.facts import NAME_ONE  # noqa: PLC0415  see pod_seen

            pod = self._task.pod
            raise ConfigError(f"which container of pod {pod}? It can't be looked up ({why}); {NAME_ONE}")

    def _out_of_time(self, now: float) -> MpirtError:
        if self._choosing:
            self.pod_not_told("no answer came")
        if self._waits_for:
            return NoPod(f"pod {self._task.pod} is not running: {self._waits_for}")
        said = None if self._attempts is None else self._attempts.out_of_time(now)
        return said or NotStarted(f"no time was left to reach pod {self._task.pod}")

    def _with_reason(self, error: MpirtError) -> MpirtError:
        return (
            NoPod(f"{error}; it is {self._waits_for}") if self._waits_for and isinstance(error, NoPod) else error
        )
