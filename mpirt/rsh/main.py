"""
mpirt-rsh: runs a command in a pod, as rsh and ssh run one on a host.

Owns: what the environment says, and the one place where an error becomes a line and a code. What is imported here
is what every remote command pays for; a test pins it.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from mpirt import names
from mpirt.errors import ExitCode, MpirtError, internal_error
from mpirt.kubeapi.access.endpoint import find_endpoint
from mpirt.kubeapi.access.steps import Deadline, run
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.request.execs import ExecApi
from mpirt.rsh.invocation import launchers
from mpirt.rsh.invocation.argv import Invocation, Wants, parse
from mpirt.rsh.ports.chance import jitter, nonce
from mpirt.rsh.ports.loop import Loop
from mpirt.rsh.ports.sessionio import SessionIO
from mpirt.rsh.ports.signals import DAEMON_GRACE, Parent, Signals
from mpirt.rsh.session.machine import State
from mpirt.rsh.session.session import Session
from mpirt.rsh.stdio.output import own_line
from mpirt.rsh.stdio.owndescriptors import OwnDescriptors
from mpirt.rsh.tasks.settings import holding
from mpirt.rsh.tasks.task import connect_seconds, make_task, wants_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpirt.rsh.ports.log import Log
    from mpirt.rsh.ports.sessionio import Follow, Follower, Hear

_INTERRUPTED = 130
_STDIN, _STDOUT, _STDERR = 0, 1, 2
# The same on every Linux.
_DEV_NULL = os.makedev(1, 3)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one remote command. Returns the code to exit with."""
    code = _main(sys.argv[1:] if argv is None else argv)
    if argv is None:
        # All is written and closed; Python's own tidying up would cost every remote command milliseconds.
        os._exit(code)
    return code


def _main(words: Sequence[str]) -> int:
    """The one place where an error becomes a line and a code."""
    try:
        _open_what_is_closed()
        asked = parse(sys.argv[0], words)
        return _tell(asked) if isinstance(asked, Wants) else _run(asked, os.environ)
    except MpirtError as error:
        _say(str(error))
        return int(error.code)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001  a launcher's user gets a line to report, not a traceback
        _say(f"{internal_error(error)}, with {names.LOG_VARIABLE}=debug")
        return ExitCode.INTERNAL


def _run(asked: Invocation, environ: Mapping[str, str]) -> int:
    begin = time.monotonic()
    # While that is looked up, a signal may end us as it ends any program.
    pod = _pod_at(asked, environ) if asked.is_address else asked.pod
    signals = Signals()
    words = launchers.prepared(asked.words)
    task = make_task(
        asked,
        words,
        environ,
        pod=pod,
        nonce=nonce(),
        has_stdin=_has_stdin(),
        encoding=sys.getfilesystemencoding(),
        holding=holding(environ),
    )
    endpoint = find_endpoint(environ, context=asked.context)
    namespace = asked.namespace or endpoint.namespace
    log = _log(asked, environ, begin)
    if log is not None:
        _say(log.place(pod, namespace, endpoint, time.monotonic()))
    loop, dialer = Loop(), Dialer(endpoint)
    running = SessionIO(
        Session(task, now=time.monotonic(), jitter=jitter),
        loop,
        ExecApi(dialer),
        OwnDescriptors(loop),
        namespace=namespace,
        pod=pod,
        service=asked.service,
        follow=_follow(loop, dialer, namespace),
        log=log,
    )
    if launchers.starts_daemon(words):
        # A daemon without its launcher has nothing to do, and mpirun leaves agents behind when it ends early.
        signals.follow(Parent(lambda: DAEMON_GRACE if _may_have_begun(running) else 0.0))
    return _see_through(running, loop, signals)


def _may_have_begun(running: SessionIO) -> bool:
    """Whether there may be a command in the pod."""
    return running.phase.state not in (State.DIAL, State.HELLO)


def _see_through(running: SessionIO, loop: Loop, signals: Signals) -> int:
    """Returns the code to end with."""

    def take_signals() -> None:
        for name, number in signals.take():
            running.signalled(name, number)

    loop.add(signals, take_signals)
    running.begin()
    while (code := running.code) is None:
        loop.turn()
    return code


def _follow(loop: Loop, dialer: Dialer, namespace: str) -> Follow:
    """How to hear of a pod."""

    def follow(pod: str, hear: Hear) -> Follower:
        # Commands that are over within a second never get here.
        from mpirt.rsh.watches.podhub import PodHub  # noqa: PLC0415

        return PodHub(loop, dialer, namespace, None, jitter=jitter).follow(pod, hear)

    return follow


def _pod_at(asked: Invocation, environ: Mapping[str, str]) -> str:
    """The name of the pod with that address: an exec goes by names only."""
    # Launchers call pods by names.
    from mpirt.rsh.pod.lookup import find_pod  # noqa: PLC0415

    endpoint = find_endpoint(environ, context=asked.context)
    api = ExecApi(Dialer(endpoint))
    deadline = Deadline(connect_seconds(asked, environ))
    try:
        return run(find_pod(api.list_steps, asked.namespace or endpoint.namespace, asked.pod, deadline))
    finally:
        api.close()


def _tell(wants: Wants) -> int:
    # Bring email and zipfile, the account database, and texts: no remote command needs any of it.
    from importlib.metadata import version  # noqa: PLC0415
    from pwd import getpwuid  # noqa: PLC0415

    from mpirt.rsh.invocation.replies import reply  # noqa: PLC0415

    try:
        user = getpwuid(os.getuid()).pw_name
    except KeyError:
        # A container may run as any number.
        user = str(os.getuid())
    told = reply(wants, version=version("mpirt"), user=user)
    for fd, text in ((_STDOUT, told.stdout), (_STDERR, told.stderr)):
        if text:
            _write(fd, text.encode(errors="backslashreplace"))
    return told.code


def _log(asked: Invocation, environ: Mapping[str, str], begin: float) -> Log | None:
    if not wants_log(asked, environ):
        return None
    # Who asks for it has the time.
    from mpirt.rsh.ports.log import Log  # noqa: PLC0415

    return Log(begin)


def _open_what_is_closed() -> None:
    """Put /dev/null where stdin, stdout or stderr are closed: what we open next would take their numbers."""
    for fd in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _has_stdin() -> bool:
    """Whether there is anything to read: launchers give us /dev/null, or nothing at all."""
    ours = os.fstat(_STDIN)
    return not (stat.S_ISCHR(ours.st_mode) and ours.st_rdev == _DEV_NULL)


def _say(line: str) -> None:
    _write(_STDERR, own_line(line))


def _write(fd: int, data: bytes) -> None:
    """Write at once and unbuffered; nobody may be there to read it."""
    try:  # noqa: SIM105  contextlib costs half a millisecond
        os.write(fd, data)
    except OSError:
        pass
