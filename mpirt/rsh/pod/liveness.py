"""
When to ask for a sign of life, and how long there has been none.

Owns: the timing of beats, and the count of silence. No I/O; the clock is handed in.

The keeper is asked, and only what comes from the pod counts as life: a ping is answered by the API server on v5.
Silence counts only while we listen: not while output waits for a slow reader of ours, and not while this process
was stopped or its machine slept.
"""

from __future__ import annotations

from mpirt.values import Value

# Three questions unanswered, the fastest proof of a lost hop; the shortest idle limit of a load balancer is 20 s.
ASK_EVERY = 4.0
DEAD_AFTER = 14.0
# Data, because pings don't move a server's idle limit.
KEEP_ALIVE_EVERY = 10.0
# While a slow reader of ours keeps us from listening, the session may long be over, and what is sent to a server
# that has closed it makes TCP throw away what is still to be read. So nothing is asked, and no more said than the
# keeper needs, which waits for 40 s.
_KEEP_ALIVE_UNREAD = 25.0
# Longer than anything the loop waits for: a gap like this means that it was not running.
_STALL_BEYOND = 2.0


class Pace(Value):
    """How often to ask for a sign of life, and how much silence means that a connection is dead, in seconds."""

    ask_every: float = ASK_EVERY
    dead_after: float = DEAD_AFTER

    @property
    def overdue_after(self) -> float:
        """How much silence means that a question was not answered at once."""
        return max(self.ask_every, ASK_EVERY) + 1

    def slower(self, ask_every: float) -> Pace:
        """The same with fewer questions, unless the user has chosen it."""
        return Pace(max(ask_every, self.ask_every), self.dead_after) if self == DEFAULT_PACE else self


DEFAULT_PACE = Pace()


class Liveness:
    """The signs of life on one connection to a keeper."""

    def __init__(self, now: float, pace: Pace = DEFAULT_PACE) -> None:
        self._pace = pace
        self._heard = self._asked = self._kept_alive = self._last_tick = now
        self._listening = True

    def change_pace(self, pace: Pace) -> None:
        """Ask more or less often from now on."""
        self._pace = pace

    @property
    def last(self) -> float:
        """When the last sign of life came."""
        return self._heard

    def is_dead(self, now: float) -> bool:
        """Whether the silence has lasted too long."""
        return self.silence(now) >= self._pace.dead_after

    def heard(self, now: float) -> None:
        """Something came from the pod."""
        self._heard = now

    def listen(self, now: float, *, listening: bool) -> None:
        """Whether what comes is being read."""
        self._listening = listening
        self._heard = now

    def silence(self, now: float) -> float:
        """For how long nothing has come, to the millisecond: a fraction less would ask for a tick at once."""
        return round(now - self._heard, 3) if self._listening else 0.0

    def tick(self, now: float) -> bool:
        """Whether a beat is due, as a question or to keep connection and keeper alive. Call it at `wake`."""
        if now - self._last_tick > self._pace.ask_every + _STALL_BEYOND:
            self._heard = now
        self._last_tick = now
        asks = self._listening and now >= max(self._heard, self._asked) + self._pace.ask_every
        if asks:
            self._asked = now
        is_due = asks or now >= self._kept_alive + self._keep_alive_every
        if is_due:
            self._kept_alive = now
        return is_due

    @property
    def _keep_alive_every(self) -> float:
        return min(KEEP_ALIVE_EVERY, 2.5 * self._pace.ask_every) if self._listening else _KEEP_ALIVE_UNREAD

    @property
    def wake(self) -> float:
        """When to tick next, at the latest."""
        # The first only to notice that we were stopped: later than what is due by then, so it costs no tick.
        moments = [
            self._last_tick + self._pace.ask_every + _STALL_BEYOND / 2,
            self._kept_alive + self._keep_alive_every,
        ]
        if self._listening:
            moments.append(max(self._heard, self._asked) + self._pace.ask_every)
        if self._heard + self._pace.dead_after > self._last_tick:
            moments.append(self._heard + self._pace.dead_after)
        return min(moments)
