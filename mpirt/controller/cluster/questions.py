"""
Asks worker pods whether they are in use, by a short program that runs in the pod.

Owns: the threads that ask, and their WebSockets, each with one deadline for all of it. Which pod is next is
decided in shares.py. The program that answers is the keeper in the worker, started by an exec; docs/keeper.md has
what it prints. Long commands, and those that must outlive a broken connection, are mpirt-rsh's.
"""

from __future__ import annotations

import os
import re
import select
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from mpirt import names
from mpirt.controller.cluster.link import Away
from mpirt.controller.cluster.shares import Shares, Turn
from mpirt.controller.model.actions import Answer, Question
from mpirt.controller.model.spec import JobKey
from mpirt.errors import MpirtError
from mpirt.kubeapi.access.endpoint import Endpoint
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request import channels, websocket
from mpirt.kubeapi.request.answers import ProtocolRefused
from mpirt.kubeapi.request.asks import Ask, exec_in_pod
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.request.execs import ExecApi, Upgraded

_LONGEST = 4096
_MASK = 4


@dataclass(frozen=True, slots=True)
class Output:
    """What a program in a pod has printed, and its exit code."""

    stdout: str
    code: int


class PodExecutor:
    """Runs programs in pods. May be used by several threads: each run has a connection of its own."""

    def __init__(self, endpoint: Callable[[], Endpoint]) -> None:
        """`endpoint` finds the API server; it is called for each run, and may raise MpirtError."""
        self._endpoint = endpoint

    def run(self, namespace: str, pod: str, container: str, command: tuple[str, ...], *, within: float) -> Output:
        """Run a program and return its output. Raises Away if that fails."""
        deadline = Deadline(within)
        try:
            api = ExecApi(Dialer(self._endpoint()))
            try:
                asked = exec_in_pod(namespace, pod, container=container, command=command)
                return _output(_opened(api, asked, deadline), deadline)
            finally:
                api.close()
        except (MpirtError, OSError) as error:
            raise Away(str(error)) from error


def _opened(api: ExecApi, asked: Ask, deadline: Deadline) -> Upgraded:
    try:
        return api.open_exec(asked, (channels.V4,), deadline)
    except ProtocolRefused:
        return api.open_exec(asked, (channels.V5,), deadline)


def _output(upgraded: Upgraded, deadline: Deadline) -> Output:
    """Read until the program's end is reported."""
    parser, stdout = channels.Channels(), bytearray()
    try:
        for message in _messages(upgraded, deadline):
            match parser.receive(message):
                case channels.Output(stream=channels.STDOUT, data=data) if len(stdout) < _LONGEST:
                    stdout += data
                case channels.Succeeded():
                    return Output(stdout.decode("ascii", "replace"), 0)
                case channels.ExitedWith(code=code):
                    return Output(stdout.decode("ascii", "replace"), code)
                case channels.Failed(message=problem):
                    raise Away(problem)
    finally:
        upgraded.stream.close()
    raise Away("the connection ended before the program's end was reported")


def _messages(upgraded: Upgraded, deadline: Deadline) -> Iterator[bytes]:
    reader = websocket.FrameReader()
    for data in _received(upgraded, deadline):
        for event in reader.feed(data):
            match event:
                case websocket.Message(data=message):
                    yield message
                case websocket.Ping(data=ping):
                    upgraded.stream.write(websocket.pong(ping, os.urandom(_MASK)))
                case websocket.Closed():
                    return


def _received(upgraded: Upgraded, deadline: Deadline) -> Iterator[bytes]:
    """Yield what arrives until the connection ends. Raises Away at the deadline."""
    stream, data = upgraded.stream, upgraded.leftover or None
    while data != b"":
        if data is not None:
            yield data
        elif deadline.passed():
            raise Away(f"no answer within {deadline}")
        else:
            poll = select.poll()
            poll.register(*stream.to_poll)
            poll.poll(deadline.left() * 1000)
        data = stream.read()


_WITHIN = 15.0
# Without a keeper for the machine it is unknown. `probe` fails if the file is for another processor.
COMMAND = (
    "/bin/sh",
    "-c",
    f'for k in {names.MPI_FOLDER}/keeper-*; do "$k" probe 2>/dev/null && exec "$k" sessions; done; exit 127',
)
_ANSWER = re.compile(r"mpirt-sessions (\d{1,9}) \d+\n?")
_NO_KEEPER = 127


class Questions:
    """The pods that are asked, and what they have answered last."""

    def __init__(
        self, executor: PodExecutor, *, clock: Callable[[], datetime], answered: Callable[[JobKey], None]
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
        answer = _ANSWER.fullmatch(found.stdout)
        if found.code == 0 and answer is not None:
            return int(answer[1]), ""
        if found.code == _NO_KEEPER:
            return None, f"no keeper in {names.MPI_FOLDER} of the pod fits its machine"
        return None, f"its keeper ended with {found.code}, and printed {found.stdout[:100]!r}"
