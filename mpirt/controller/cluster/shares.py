"""
Which worker pod is asked next whether it is in use, and what the pods have answered last.

Owns: the pauses between two questions to the same pod, and the shares of the places, since each question takes one
for as long as the pod takes. A tenant can make its pods hang, so it must not be able to delay the others:

- Namespaces take turns; so do the jobs of one, and the pods of a job.
- A namespace takes another place only if more are free than it has: alone it gets half of them, and those that
  come later find some free, however many namespaces hang. A job gets at most a quarter.
- Slow pods, all together, get at most a quarter. Those that don't answer at all are asked less and less often.

No threads, no clock, no I/O.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto

from mpirt.controller.model.actions import Answer, Question
from mpirt.controller.model.spec import JobKey

PLACES = 32
"""How many pods are asked at the same time."""
_OF_A_JOB = 4
_OF_SLOW_PODS = 4
"""The divisors of their shares."""

_PAUSE = timedelta(seconds=1)
# One that is not in use is asked once more to be sure, and then from time to time, until all that leave are idle.
_PAUSE_IF_IDLE = timedelta(seconds=2.1)
_LONGEST_PAUSE = timedelta(seconds=60)
# An exec takes 0.1 s, and about a second on a busy node.
_SLOW = timedelta(seconds=2)
# For so long after a pod was slow, pods of its namespace that have not answered yet count as slow.
_SUSPICION = timedelta(seconds=60)


class _Lane(Enum):
    """What is known of a pod's speed."""

    QUICK = auto()
    NEW = auto()
    """It has not answered yet."""
    SLOW = auto()


@dataclass(slots=True)
class _Pod:
    """A pod that a job wants to be asked."""

    question: Question
    lane: _Lane = _Lane.NEW
    silences: int = 0
    """How often in a row it was slow, and did not answer."""
    answer: Answer | None = None

    @property
    def due(self) -> datetime | None:
        """When it may be asked again; None if it was not asked yet."""
        if self.answer is None:
            return None
        if self.silences:
            return self.answer.at + min(_PAUSE * (1 << min(self.silences - 1, 10)), _LONGEST_PAUSE)
        return self.answer.at + (_PAUSE if self.answer.idle_since is None else _PAUSE_IF_IDLE)


@dataclass(slots=True)
class _Job:
    """The pods of a job by uid, and those that wait for their turn, the first of each lane first."""

    pods: dict[str, _Pod] = field(default_factory=dict)
    waiting: OrderedDict[_Lane, dict[str, None]] = field(
        default_factory=lambda: OrderedDict((lane, {}) for lane in _Lane)
    )

    @property
    def waits(self) -> bool:
        return any(self.waiting.values())


@dataclass(frozen=True, slots=True)
class Turn:
    """A question that is put now, and holds a place until it is done."""

    key: JobKey
    question: Question
    begun: datetime
    is_slow: bool
    """Whether it holds one of the places for slow pods."""

    def lasts_long(self, now: datetime) -> bool:
        return now - self.begun >= _SLOW


class Shares:
    """The questions of all jobs. Not thread-safe: see questions.py."""

    def __init__(self, places: int = PLACES) -> None:
        self._places = places
        self._jobs: dict[JobKey, _Job] = {}
        # The jobs that wait, by namespace; the one that had a turn becomes the last.
        self._order: OrderedDict[str, OrderedDict[JobKey, None]] = OrderedDict()
        self._turns: dict[str, Turn] = {}
        # The namespaces in which a pod was slow of late, and until when that counts.
        self._suspected: dict[str, datetime] = {}

    def ask(self, key: JobKey, asked: Iterable[Question], now: datetime) -> datetime | None:
        """
        Ask these pods of the job, unless they are being asked, and forget all others.

        Return when a pod that was asked a moment ago may be asked again; None if there is none.
        """
        wanted = {one.uid: one for one in asked}
        if not wanted:
            self.forget(key)
            return None
        job, later = self._jobs.setdefault(key, _Job()), list[datetime]()
        job.pods = {uid: job.pods.get(uid) or _Pod(question) for uid, question in wanted.items()}
        for uids in job.waiting.values():
            for uid in [uid for uid in uids if uid not in wanted]:
                del uids[uid]
        for uid, pod in job.pods.items():
            if pod.due is not None and pod.due > now:
                later.append(pod.due)
            elif uid not in self._turns:
                job.waiting[pod.lane].setdefault(uid)
        self._queue(key, job)
        return min(later, default=None)

    def answers(self, key: JobKey) -> Mapping[str, Answer]:
        """Return what the job's pods have answered, by their uids."""
        job = self._jobs.get(key) or _Job()
        return {uid: pod.answer for uid, pod in job.pods.items() if pod.answer is not None}

    def forget(self, key: JobKey) -> None:
        """Drop the questions and the answers of a job."""
        if self._jobs.pop(key, None) is not None:
            self._queue(key, _Job())

    def take(self, now: datetime) -> Turn | None:
        """Return the next question, which is put now; None if none may be."""
        free = self._places - len(self._turns)
        self._suspect((one.key.namespace for one in self._turns.values() if one.lasts_long(now)), now)
        slow = sum(one.is_slow or one.lasts_long(now) for one in self._turns.values())
        with_slow = slow < self._places // _OF_SLOW_PODS
        for namespace, keys in self._order.items():
            if sum(one.key.namespace == namespace for one in self._turns.values()) >= free:
                continue
            for key in keys:
                turn = self._turn(key, now, with_slow=with_slow)
                if turn is not None:
                    return turn
        return None

    def done(self, turn: Turn, sessions: int | None, problem: str, now: datetime) -> bool:
        """Note an answer, or without `sessions` why there is none. Return whether its job still wants to know."""
        del self._turns[turn.question.uid]
        is_slow = turn.lasts_long(now)
        self._suspect([turn.key.namespace] if is_slow else [], now)
        job = self._jobs.get(turn.key)
        pod = job.pods.get(turn.question.uid) if job is not None else None
        if pod is None:
            return False
        since = pod.answer.idle_since if pod.answer is not None else None
        pod.answer = Answer(now, sessions, problem, (since or now) if sessions == 0 else None)
        pod.lane = _Lane.SLOW if is_slow else _Lane.QUICK
        pod.silences = pod.silences + 1 if is_slow and sessions is None else 0
        return True

    def _turn(self, key: JobKey, now: datetime, *, with_slow: bool) -> Turn | None:
        """Return the turn of a pod of this job; None if none may have one."""
        if sum(one.key == key for one in self._turns.values()) >= self._places // _OF_A_JOB:
            return None
        job = self._jobs[key]
        slow = {_Lane.SLOW, _Lane.NEW} if key.namespace in self._suspected else {_Lane.SLOW}
        for lane, uids in job.waiting.items():
            if uids and (with_slow or lane not in slow):
                uid = next(iter(uids))
                del uids[uid]
                job.waiting.move_to_end(lane)
                turn = self._turns[uid] = Turn(key, job.pods[uid].question, now, lane in slow)
                self._queue(key, job, is_last=True)
                return turn
        return None

    def _queue(self, key: JobKey, job: _Job, *, is_last: bool = False) -> None:
        """Queue a job if it waits; as the last one of its namespace, and that as the last, if it had its turn."""
        keys = self._order.setdefault(key.namespace, OrderedDict())
        if job.waits:
            keys.setdefault(key)
        else:
            keys.pop(key, None)
        if is_last:
            self._order.move_to_end(key.namespace)
            if key in keys:
                keys.move_to_end(key)
        if not keys:
            del self._order[key.namespace]

    def _suspect(self, namespaces: Iterable[str], now: datetime) -> None:
        """Suspect pods of these namespaces from now on, and of no others for longer than that lasts."""
        known = {namespace: until for namespace, until in self._suspected.items() if now < until}
        self._suspected = known | dict.fromkeys(namespaces, now + _SUSPICION)
