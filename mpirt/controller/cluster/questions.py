"""
Asks worker pods whether they are in use.

Owns: the threads that ask. Which pod is next is decided in shares.py. The program that answers is the keeper in
the worker, started by an exec; docs/keeper.md has what it prints. Every method may be called from any thread.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from mpirt import names
from mpirt.controller.cluster.link import Away
from mpirt.controller.cluster.shares import Shares, Turn
from mpirt.controller.model.proofs import Answer, Question
from mpirt.controller.model.spec import JobKey

_WITHIN = 15.0
# Without a keeper for the machine nobody knows. `probe` fails if the file is for another processor.
COMMAND = (
    "/bin/sh",
    "-c",
    f'for k in {names.MPI_FOLDER}/keeper-*; do "$k" probe 2>/dev/null && exec "$k" sessions; done; exit 127',
)
_ANSWER = re.compile(r"mpirt-sessions (\d{1,9}) \d+\n?")
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
        self._shares = Shares()
        self._closed = False

    def ask(self, key: JobKey, asked: Iterable[Question]) -> datetime | None:
        """
        Ask these pods, unless they are being asked, and forget all other pods of the job.

        Return when a pod that was asked a moment ago may be asked again; None if there is none.
        """
        with self._lock:
            later = self._shares.ask(key, asked, self._clock())
            self._put_next()
        return later

    def answers(self, key: JobKey) -> Mapping[str, Answer]:
        """Return what the job's pods have answered, by their uids."""
        with self._lock:
            return self._shares.answers(key)

    def forget(self, key: JobKey) -> None:
        """Drop the questions and the answers of a job that is gone."""
        with self._lock:
            self._shares.forget(key)

    def close(self) -> None:
        """Ask no more. The process need not wait for those that are being asked."""
        with self._lock:
            self._closed = True

    def _put_next(self) -> None:
        """Put the questions whose turn it is. Each gets a thread, which is over with its answer."""
        while not self._closed and (turn := self._shares.take(self._clock())) is not None:
            threading.Thread(target=self._put, args=(turn,), name=f"ask {turn.question.pod}", daemon=True).start()

    def _put(self, turn: Turn) -> None:
        sessions, problem = self._sessions(turn.key, turn.question)
        with self._lock:
            is_wanted = self._shares.done(turn, sessions, problem, self._clock())
            self._put_next()
        if is_wanted:
            self._answered(turn.key)

    def _sessions(self, key: JobKey, question: Question) -> tuple[int | None, str]:
        """Return how many commands run in the pod, or None and why that is unknown."""
        try:
            found = self._executor.run(key.namespace, question.pod, question.container, COMMAND, within=_WITHIN)
        except Away as error:
            return None, str(error)
        except Exception as error:  # noqa: BLE001  or its place would be taken for ever
            return None, f"internal error; please report it: {type(error).__name__}: {error}"
        told = _ANSWER.fullmatch(found.stdout)
        if found.code == 0 and told is not None:
            return int(told[1]), ""
        if found.code == _NO_KEEPER:
            return None, f"no keeper in {names.MPI_FOLDER} of the pod fits its machine"
        return None, f"its keeper ended with {found.code}, and printed {found.stdout[:100]!r}"
