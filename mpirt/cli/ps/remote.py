"""
`mpirt ps` of another launcher: it is run there, by mpirt-rsh's own session.

Owns: which pod the launcher of a job is, what is run in it, and reading what that prints.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mpirt import names
from mpirt.cli.ps.boards import Board, read
from mpirt.discover.selection import by_job
from mpirt.discover.source import ApiPods
from mpirt.errors import ExitCode, MpirtError, NoPod, NoShell, PeerError, Refused, Unreachable
from mpirt.kubeapi.access.endpoint import find_endpoint
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.api import Api
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.request.execs import ExecApi
from mpirt.rsh.invocation.argv import Invocation
from mpirt.rsh.ports.chance import jitter, nonce
from mpirt.rsh.ports.loop import Loop
from mpirt.rsh.ports.sessionio import SessionIO
from mpirt.rsh.session import events
from mpirt.rsh.session.session import Session
from mpirt.rsh.tasks.task import CONNECT_TIMEOUT, make_task
from mpirt.rsh.watches.podhub import PodHub

if TYPE_CHECKING:
    from mpirt.discover.pods import Pod
    from mpirt.rsh.session.record import Record

_FIND_SECONDS = 20.0
_NOT_FOUND = 127
# The folder that an init container has filled comes first: it has no other Python than its own to depend on.
_SCRIPT = (
    f'd="${{{names.RUNTIME_VARIABLE}:-{names.RUNTIME_PATH}}}"; '
    f'if [ -x "$d/bin/{names.MPIRT}" ]; then exec "$d/bin/{names.MPIRT}" ps --json; fi; '
    f"command -v {names.MPIRT} >/dev/null || exit {_NOT_FOUND}; exec {names.MPIRT} ps --json"
)
# Of our own environment: what is about the way to the cluster. The rest is about workers.
_PASSED = (CONNECT_TIMEOUT, names.PROTOCOL_VARIABLE)
_STDOUT, _STDERR = 1, 2
# What the session ends with where it could not run the program.
_ERRORS: Mapping[int, type[MpirtError]] = {
    ExitCode.REFUSED: Refused,
    ExitCode.NO_POD: NoPod,
    ExitCode.UNREACHABLE: Unreachable,
    ExitCode.NO_SHELL: NoShell,
}


class Remote:
    """The launcher of one job."""

    def __init__(self, job: str, environ: Mapping[str, str], *, namespace: str, context: str) -> None:
        """Raises MpirtError where there is no such launcher."""
        self._dialer = Dialer(find_endpoint(environ, context=context))
        self._namespace = namespace or self._dialer.endpoint.namespace
        self._environ = {name: environ[name] for name in _PASSED if name in environ}
        self._pod = self._launcher(job)

    def ask(self) -> list[Board]:
        """The switchboards there. Raises MpirtError."""
        code, output = self._run()
        if code == _NOT_FOUND:
            raise NoShell(
                f"the launcher pod {self._pod.name} has no program {names.MPIRT}, neither in"
                f" {names.RUNTIME_PATH}/bin nor on PATH; mount that folder there, or install mpirt in the image"
            )
        try:
            return read(output.output(_STDOUT))
        except PeerError as error:
            if output.said and not output.last_line:
                raise _ERRORS.get(code, PeerError)(output.said[-1]) from error
            why = output.last_line or str(error)
            raise PeerError(
                f"{names.MPIRT} ps in the launcher pod {self._pod.name} ended with {code}: {why}"
            ) from error

    def close(self) -> None:
        """There is no connection between two questions."""

    def _launcher(self, job: str) -> Pod:
        api = Api(self._dialer)
        try:
            pods = ApiPods(api, self._namespace).select(by_job(job, origin="JOB"), Deadline(_FIND_SECONDS))
        finally:
            api.close()
        return choose(pods, job, self._namespace)

    def _run(self) -> tuple[int, _Collected]:
        pod = self._pod.name
        asked = Invocation(pod, (_SCRIPT,), container=self._pod.container)
        # It is over in a second: without a keeper it leaves nothing in the pod.
        task = make_task(
            asked,
            asked.words,
            self._environ,
            pod=pod,
            nonce=nonce(),
            has_stdin=False,
            encoding="utf-8",
            holding=None,
        )
        loop, output, api = Loop(), _Collected(), ExecApi(self._dialer)
        running = SessionIO(
            Session(task, now=time.monotonic(), jitter=jitter),
            loop,
            api,
            output,
            namespace=self._namespace,
            pod=pod,
            follow=PodHub(loop, self._dialer, self._namespace, None, jitter=jitter).follow,
        )
        running.begin()
        try:
            while (code := running.code) is None:
                loop.turn()
        finally:
            api.close()
        return code, output


def choose(pods: Sequence[Pod], job: str, namespace: str) -> Pod:
    """The launcher that runs; of several, as while a job is restarted, the latest. Raises NoPod."""
    launchers = [pod for pod in pods if pod.role == names.LAUNCHER]
    running = [pod for pod in launchers if not pod.ended]
    if running:
        return max(running, key=lambda pod: (not pod.deleting, pod.ready, pod.created, pod.name))
    where = f"namespace {namespace}"
    if launchers:
        raise NoPod(f"the launcher of job {job} in {where} has ended: pod {launchers[-1].name}")
    if pods:
        raise NoPod(f"job {job} in {where} has no launcher pod, only {len(pods)} others; it may not have started")
    raise NoPod(f"there is no pod of a job {job} in {where}; name another one by -n or --context")


class _Collected:
    """The command's streams, as far as there is room. A session's client."""

    _MOST = 64 * 1024 * 1024

    def __init__(self) -> None:
        self._bytes = {_STDOUT: bytearray(), _STDERR: bytearray()}
        self._running: SessionIO | None = None
        self.said: list[str] = []
        """What the session itself has told."""

    def output(self, stream: int) -> str:
        return self._bytes[stream].decode(errors="replace")

    @property
    def last_line(self) -> str:
        """Of stderr: what the program there says is wrong."""
        lines = self.output(_STDERR).split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def serve(self, running: SessionIO) -> None:
        self._running = running

    def write(self, stream: int, data: bytes) -> None:
        if len(self._bytes[stream]) + len(data) > self._MOST:
            raise PeerError(f"the program in the launcher pod prints more than {self._MOST} bytes")
        self._bytes[stream] += data

    def say(self, line: str) -> None:
        self.said.append(line)

    @property
    def waiting(self) -> int:
        return 0

    @property
    def is_crowded(self) -> bool:
        return False

    @property
    def done(self) -> tuple[int, int]:
        return len(self._bytes[_STDOUT]), len(self._bytes[_STDERR])

    def broken_by(self, stream: int) -> int:  # noqa: ARG002  memory is never broken
        return 0

    def keep(self, record: Record | None) -> None:
        """Nobody would go on with it."""
        if self._running is not None:
            self._running.hear(events.Kept(record))

    def settle(self, stdin_room: int, stdin_taken: int) -> None:
        """There is no stdin, and nobody to send the output to."""

    def read_no_more(self) -> None:
        """There is none."""
