"""
Commands that begin when their pod is Ready.

Owns: which pods are waited for, what is known of each, when a command begins or gives up, and the line that says
now and then what is missing: one for all, however many wait. A pod that does not exist is waited for only if the
launcher's list of hosts names it: any other name may be mistyped. No I/O; the clock is handed in.

Kubernetes says that a pod is Ready a second after its container runs. Where a few commands wait, each tries to
begin when its node starts the pod; one that is too early waits again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from mpirt.kubeapi.access.steps import Clock
from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.session.retry import EARLY_SECONDS, REFUSALS_PASS_SECONDS
from mpirt.rsh.watches.loop import FOR_EVER

# From the first command that waits to the first line, and from each line to the next.
_SILENT_SECONDS = 5.0
_LONGEST_PAUSE = 300.0
_MOST_NAMED = 3
# Each makes up to two dozen attempts in its EARLY_SECONDS.
_MOST_EARLY = 16


@dataclass(frozen=True, slots=True)
class Waiter:
    """A command that waits."""

    who: Hashable
    pod: str
    seconds: float
    """For how long."""
    is_listed: bool
    """Whether the launcher's list of hosts names the pod."""
    begin: Callable[[], None]
    give_up: Callable[[str], None]
    """It gets the reason."""
    say: Callable[[str], None]
    try_early: Callable[[], None] | None = None
    """Begins with a command that may be too early; None if it may not."""


class Awaited:
    """The pods that are waited for, and the commands that wait. `begin` and `give_up` are called in act() only."""

    def __init__(self, clock: Clock, is_silent: Callable[[], bool]) -> None:
        """`is_silent` says whether the API server can't be heard."""
        self._clock, self._is_silent = clock, is_silent
        self._waiting: dict[Hashable, tuple[Waiter, float]] = {}
        self._by_pod: dict[str, dict[Hashable, None]] = {}
        # None: there is no such pod. Pods of which nothing is known yet are missing.
        self._known: dict[str, Pod | None] = {}
        self._due: dict[Hashable, None] = {}
        self._wanted = 0
        self._begun = 0.0
        # No command gives up before.
        self._first_end = FOR_EVER
        self._say_at, self._pause = FOR_EVER, _SILENT_SECONDS
        # Since when pods may not be listed.
        self._refused_since: float | None = None
        # Until when each that was tried counts as one that waits.
        self._tried: deque[float] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def waits(self, who: Hashable) -> bool:
        """Whether it waits."""
        return who in self._waiting

    def timeout(self) -> float:
        """In how many seconds to act."""
        if not self._waiting:
            return FOR_EVER
        if self._due:
            return 0.0
        return max(0.0, min(self._first_end, self._say_at) - self._clock())

    def enter(self, waiter: Waiter) -> None:
        """A command waits from now on."""
        now = self._clock()
        if not self._waiting:
            self._wanted, self._begun = 0, now
            self._say_at, self._pause = now + _SILENT_SECONDS, _SILENT_SECONDS
            self._first_end = FOR_EVER
        self._wanted += 1
        self._waiting[waiter.who] = waiter, now + waiter.seconds
        self._first_end = min(self._first_end, now + waiter.seconds)
        self._by_pod.setdefault(waiter.pod, {})[waiter.who] = None

    def leave(self, who: Hashable) -> None:
        """It does not wait any more."""
        waiter, _ = self._waiting.pop(who, (None, 0.0))
        self._due.pop(who, None)
        if waiter is None:
            return
        others = self._by_pod[waiter.pod]
        del others[who]
        if not others:
            del self._by_pod[waiter.pod]
            self._known.pop(waiter.pod, None)

    def hear(self, name: str, pod: Pod | None) -> None:
        """A pod as it is now; None if there is none."""
        waiting = self._by_pod.get(name)
        if waiting is None:
            return
        self._known[name] = pod
        for who in waiting:
            waiter, _ = self._waiting[who]
            if self._may_begin(waiter, pod):
                self._due[who] = None
            else:
                self._due.pop(who, None)

    def _may_begin(self, waiter: Waiter, pod: Pod | None) -> bool:
        if pod is None:
            return not waiter.is_listed
        may_try = waiter.try_early is not None and pod.may_be_entered_soon
        return pod.is_ready or (may_try and self._are_few())

    def _are_few(self) -> bool:
        now = self._clock()
        while self._tried and self._tried[0] <= now:
            self._tried.popleft()
        return len(self._waiting) + len(self._tried) <= _MOST_EARLY

    def listed(self, there: Callable[[str], bool]) -> None:
        """All pods are known now; `there` says whether one exists."""
        self._refused_since = None
        for name in tuple(self._by_pod):
            if not there(name):
                self.hear(name, None)

    def hear_refusal(self) -> bool:
        """Pods may not be listed. Whether to ask again: if that does not pass, the commands may as well begin."""
        now = self._clock()
        self._refused_since = now if self._refused_since is None else self._refused_since
        # A Role may also come later than its launcher.
        if now - self._refused_since < REFUSALS_PASS_SECONDS:
            return bool(self._waiting)
        self._due.update(dict.fromkeys(self._waiting))
        return False

    def act(self) -> None:
        """Have those begin whose pod is Ready, and those give up whose time is over; say what is missing."""
        now = self._clock()
        for who in tuple(self._due):
            if who in self._due:
                self._begin(who, now)
        if now >= self._first_end:
            for who in [who for who, (_, until) in self._waiting.items() if until <= now]:
                self._give_up(who)
            self._first_end = min((until for _, until in self._waiting.values()), default=FOR_EVER)
        if self._waiting and now >= self._say_at:
            self._say(now)

    def _begin(self, who: Hashable, now: float) -> None:
        waiter, _ = self._waiting[who]
        pod = self._known.get(waiter.pod)
        self.leave(who)
        if waiter.try_early is not None and pod is not None and not pod.is_ready:
            # It may come back.
            self._wanted -= 1
            self._tried.append(now + EARLY_SECONDS)
            waiter.try_early()
            return
        if not self._waiting and self._pause > _SILENT_SECONDS:
            waiter.say(f"no worker is waited for any more, after {now - self._begun:.0f} s")
        waiter.begin()

    def _give_up(self, who: Hashable) -> None:
        # One that gave up before may have taken it along.
        waiter, _ = self._waiting.get(who, (None, 0.0))
        if waiter is not None:
            why = f"pod {waiter.pod} {self._words(waiter.pod)}, after {waiter.seconds:.0f} s of waiting"
            self.leave(who)
            waiter.give_up(why)

    def _say(self, now: float) -> None:
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self._say_at = now + self._pause
        waiter, _ = next(iter(self._waiting.values()))
        waiter.say(self._line())

    def _line(self) -> str:
        pods = list(self._by_pod)
        found = [f"{name} {self._words(name)}" for name in pods[:_MOST_NAMED]]
        more = [f"and {len(pods) - _MOST_NAMED} more"] if len(pods) > _MOST_NAMED else []
        return f"waiting for {len(self._waiting)} of {self._wanted} workers: {'; '.join([*found, *more])}"

    def _words(self, name: str) -> str:
        """What is known of a pod that is not Ready."""
        if self._is_silent():
            return "is not known to be Ready: the API server does not answer"
        if name not in self._known:
            return f"is not known to be Ready{'' if self._refused_since is None else ': pods may not be listed'}"
        pod = self._known[name]
        return "does not exist" if pod is None else f"is not Ready: {pod.waits_for}"
