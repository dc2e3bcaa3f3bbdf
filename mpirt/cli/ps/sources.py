"""
Where `mpirt ps` gets its answer: the switchboards of this container and this user, or the launcher of a job, in
which it is run by mpirt-rsh.

Owns: asking all switchboards here, and what is said of those that can't be asked; which pod the launcher of a job
is, what is run in it, and reading what that prints.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import psutil

from mpirt import names
from mpirt.cli.launchers import find_agent
from mpirt.cli.ps.boards import Board, Row, Usage, read
from mpirt.discover.discovery import Pod
from mpirt.discover.job import ApiPods
from mpirt.discover.options import by_job
from mpirt.errors import ExitCode, MpirtError, NoPod, NoShell, PeerError, Refused, Unreachable
from mpirt.kubeapi.access.endpoint import find_endpoint
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.api import Api
from mpirt.kubeapi.request.dial import Dialer
from mpirt.rsh.protocol.framing import frame
from mpirt.rsh.switchboard.frames import Kind
from mpirt.rsh.switchboard.sockets import Client, NotUsed, connect, places
from mpirt.rsh.switchboard.status import CommandStatus, read_document
from mpirt.rsh.switchboard.task import CONNECT_TIMEOUT

# A switchboard that starts takes less than a second, and a busy one no longer.
PATIENCE = 10.0
_REQUEST = frame(Kind.STATUS_REQUEST)
_FIND_SECONDS = 20.0
_NOT_FOUND = 127
# The folder that an init container has filled comes first: it has no other Python than its own to depend on.
_SCRIPT = (
    f'd="${{{names.RUNTIME_VARIABLE}:-{names.RUNTIME_PATH}}}"; '
    f'if [ -x "$d/bin/{names.MPIRT}" ]; then exec "$d/bin/{names.MPIRT}" ps --json; fi; '
    f"command -v {names.MPIRT} >/dev/null || exit {_NOT_FOUND}; exec {names.MPIRT} ps --json"
)
# Of our own variables: what is about the way to the cluster. The others are about workers.
_PASSED = (CONNECT_TIMEOUT, names.PROTOCOL_VARIABLE, "MPIRT_CONTEXT")
_SAID = f"{names.RSH}: "
# What a pod prints is held in memory.
_MOST = 64 * 1024 * 1024
# What mpirt-rsh ends with where it could not run the program.
_ERRORS: Mapping[int, type[MpirtError]] = {
    ExitCode.REFUSED: Refused,
    ExitCode.NO_POD: NoPod,
    ExitCode.UNREACHABLE: Unreachable,
    ExitCode.NO_SHELL: NoShell,
}


class Local:
    """All of them, with a connection to each that is kept for the next question."""

    def __init__(self, environ: Mapping[str, str], warn: Callable[[str], None]) -> None:
        """`warn` takes why a folder is not used."""
        self._places = places(environ)
        self._warn = warn
        self._warned: set[str] = set()
        self._clients: dict[str, Client] = {}

    def ask(self) -> list[Board]:
        """How they are. Raises Unreachable and PeerError."""
        return [board for place in self._places if (board := self._ask(place)) is not None]

    def close(self) -> None:
        """Leave them."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _ask(self, place: str) -> Board | None:
        # One that has ended since may have a successor. One that ends a second connection, too, can't be asked.
        for is_last in (False, True):
            asked = self._clients.pop(place, None) or self._connect(place)
            if asked is None:
                return None
            try:
                board = _board(place, asked.ask(_REQUEST, Kind.STATUS, PATIENCE))
            except (EOFError, ConnectionError):
                if is_last and asked.was_welcome:
                    raise PeerError(
                        f"the switchboard in {place} ends the connection instead of answering; it belongs to"
                        " a version of mpirt that has no status"
                    ) from None
            except TimeoutError:
                raise Unreachable(
                    f"the switchboard in {place} does not answer within {PATIENCE:.0f} s; it may be stopped or"
                    f" overloaded, see {place}/log"
                ) from None
            else:
                self._clients[place] = asked
                return board
            finally:
                if place not in self._clients:
                    asked.close()
        return None

    def _connect(self, place: str) -> Client | None:
        try:
            return connect(place, seconds=PATIENCE)
        except NotUsed as error:
            why = f"{place} {error}; it is not used"
            if why not in self._warned:
                self._warned.add(why)
                self._warn(why)
            return None


def _board(place: str, document: bytes) -> Board:
    status, commands = read_document(document)
    return Board(place, status, _usage(status.pid), tuple(Row(one, _usage(_agent(one))) for one in commands))


def _agent(command: CommandStatus) -> int | None:
    """Its pid, as long as it lives: the number may be another program's by now."""
    return command.agent if owner(command.agent) == os.geteuid() else None


def _usage(pid: int | None) -> Usage:
    return Usage(cpu_seconds(pid), memory(pid))


class Remote:
    """The launcher of one job."""

    def __init__(self, job: str, environ: Mapping[str, str], *, namespace: str, context: str) -> None:
        """Raises MpirtError where there is no such launcher."""
        dialer = Dialer(find_endpoint(environ, context=context))
        namespace = namespace or dialer.endpoint.namespace
        self._pod = _launcher(Api(dialer), job, namespace)
        options = {"namespace": namespace, "container": self._pod.container().name, "context": context}
        words = [f"--{name}={given}" for name, given in options.items() if given]
        self._command = [str(find_agent(sys.argv[0])), "--direct", *words, self._pod.name, _SCRIPT]
        self._environ = {
            name: given for name, given in environ.items() if not name.startswith("MPIRT_") or name in _PASSED
        }

    def ask(self) -> list[Board]:
        """The switchboards there. Raises MpirtError."""
        code, output, errors = self._run()
        if code == _NOT_FOUND:
            raise NoShell(
                f"the launcher pod {self._pod.name} has no program {names.MPIRT}, neither in"
                f" {names.RUNTIME_PATH}/bin nor on PATH; mount that folder there, or install mpirt in the image"
            )
        try:
            return read(output)
        except PeerError as error:
            lines = [line.strip() for line in errors.splitlines() if line.strip()]
            last = lines[-1] if lines else str(error)
            if last.startswith(_SAID):
                raise _ERRORS.get(code, PeerError)(last.removeprefix(_SAID)) from error
            raise PeerError(
                f"{names.MPIRT} ps in the launcher pod {self._pod.name} ended with {code}: {last}"
            ) from error

    def _run(self) -> tuple[int, str, str]:
        """Its code, stdout and stderr."""
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                self._command, env=self._environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            ) as process,
        ):
            assert process.stdout is not None  # it is a pipe
            output = process.stdout.read(_MOST + 1)
            if len(output) > _MOST:
                process.kill()
                raise PeerError(f"the program in the launcher pod prints more than {_MOST} bytes")
            code = process.wait()
            errors.seek(0)
            return code, output.decode(errors="replace"), errors.read().decode(errors="replace")

    def close(self) -> None:
        """There is no connection between two questions."""


def _launcher(api: Api, job: str, namespace: str) -> Pod:
    try:
        pods = ApiPods(api, namespace).select(by_job(job, origin="JOB"), Deadline(_FIND_SECONDS))
    finally:
        api.close()
    return choose(pods, job, namespace)


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


def owner(pid: int | None) -> int | None:
    """The user that it runs as."""
    with suppress(psutil.Error):
        return int(_process(pid).uids().effective)
    return None


def cpu_seconds(pid: int | None) -> float | None:
    """How much CPU time it has used."""
    with suppress(psutil.Error):
        times = _process(pid).cpu_times()
        return float(times.user + times.system)
    return None


def memory(pid: int | None) -> int | None:
    """
    Its memory in bytes, with its share of what it shares with others (Pss).

    Without the permission to read that, all that it has in memory (RSS).
    """
    with suppress(psutil.Error):
        process = _process(pid)
        try:
            return int(process.memory_full_info().pss)
        except psutil.AccessDenied:
            return int(process.memory_info().rss)
    return None


def _process(pid: int | None) -> psutil.Process:
    """Raises psutil.Error."""
    if not pid:
        raise psutil.NoSuchProcess(0)
    return psutil.Process(pid)
