"""
Asks worker pods whether they are in use.

Owns: the threads that ask, the pauses between two questions to the same pod, and the answers. The program that
answers is the keeper in the worker, started by an exec; docs/keeper.md has what it prints. Every method may be
called from any thread.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from mpirt import names
from mpirt.controller.cluster.link import Away
from mpirt.controller.model.proofs import Answer, Question
from mpirt.controller.model.spec import JobKey

# Of pods that are asked at the same time.
_AT_ONCE = 8
_WITHIN = 15.0
_PAUSE = timedelta(seconds=1)
# One that is not in use is asked once more to be sure, and then from time to time, until all that leave are idle.
_PAUSE_IF_IDLE = timedelta(seconds=2.1)
# Without a keeper for the machine nobody knows. `probe` fails if the file is for another processor.
COMMAND = (
    "/bin/sh",
    "-c",
    f'for k in {names.MPI_FOLDER}/keeper-*; do "$k" probe 2>/dev/null && exec "$k" sessions; done; exit 127',
)
_ANSWER = re.compile(r"mpirt-sessions (\d+) \d+\n?")
_NO_KEEPER = 127


@dataclass(frozen=True, slots=True)
class Output:
    """What a program in a pod has printed, and its exit code."""

    stdout: str
    code: int


class Executor(Protocol):
    """Runs programs in pods."""

    def run(self, namespace: str, pod: str, container: str, command: tuple[str, ...], *, within: float) -> Output:
        """Run a program and return its output. Raises Away if that fails."""


class Questions:
    """The pods that are asked, and what they have answered last."""

    def __init__(
        self, executor: Executor, *, clock: Callable[[], datetime], answered: Callable[[JobKey], None]
    ) -> None:
        """`answered` is called, from any thread, when there is an answer for a job."""
        self._executor = executor
        self._clock = clock
        self._answered = answered
        self._lock = threading.Lock()
        self._answers: dict[JobKey, dict[str, Answer]] = {}
        self._asking: set[str] = set()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ask")

    def ask(self, key: JobKey, asked: Iterable[Question]) -> datetime | None:
        """
        Ask these pods, unless they are being asked, and forget all other pods of the job.

        Return when a pod that was asked a moment ago may be asked again; None if there is none.
        """
        wanted, now, later = {one.uid: one for one in asked}, self._clock(), list[datetime]()
        with self._lock:
            known = self._answers.pop(key, {})
            if kept := {uid: answer for uid, answer in known.items() if uid in wanted}:
                self._answers[key] = kept
            for uid, question in wanted.items():
                due = _due(kept[uid]) if uid in kept else now
                if due > now:
                    later.append(due)
                elif uid not in self._asking:
                    self._asking.add(uid)
                    self._pool.submit(self._put, key, question)
        return min(later, default=None)

    def answers(self, key: JobKey) -> Mapping[str, Answer]:
        """Return what the job's pods have answered, by their uids."""
        with self._lock:
            return dict(self._answers.get(key, {}))

    def forget(self, key: JobKey) -> None:
        """Drop the answers of a job that is gone."""
        with self._lock:
            self._answers.pop(key, None)

    def close(self) -> None:
        """Ask no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _put(self, key: JobKey, question: Question) -> None:
        sessions, problem = self._sessions(key, question)
        now = self._clock()
        with self._lock:
            self._asking.discard(question.uid)
            answers = self._answers.setdefault(key, {})
            before = answers.get(question.uid)
            since = before.idle_since if before is not None else None
            idle_since = (since or now) if sessions == 0 else None
            answers[question.uid] = Answer(now, sessions, problem, idle_since)
        self._answered(key)

    def _sessions(self, key: JobKey, question: Question) -> tuple[int | None, str]:
        """Return how many commands run in the pod, or None and why that is unknown."""
        try:
            found = self._executor.run(key.namespace, question.pod, question.container, COMMAND, within=_WITHIN)
        except Away as error:
            return None, str(error)
        told = _ANSWER.fullmatch(found.stdout)
        if found.code == 0 and told is not None:
            return int(told[1]), ""
        if found.code == _NO_KEEPER:
            return None, f"no keeper in {names.MPI_FOLDER} of the pod fits its machine"
        return None, f"its keeper ended with {found.code}, and printed {found.stdout[:100]!r}"


def _due(answer: Answer) -> datetime:
    return answer.at + (_PAUSE if answer.idle_since is None else _PAUSE_IF_IDLE)
