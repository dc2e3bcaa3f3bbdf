"""
mpirt-rsh: runs a command in a pod, as rsh and ssh run one on a host.

Owns: what the environment says, the one place where an error becomes a line and a code, and the help. What is
imported here is what every remote command pays for; a test pins it.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from mpirt import names
from mpirt.errors import ExitCode, MpirtError, UsageError, our_mistake
from mpirt.kubeapi.dial import Dialer
from mpirt.kubeapi.endpoint import find_endpoint
from mpirt.kubeapi.execs import ExecApi
from mpirt.rsh import launchers
from mpirt.rsh.argv import Invocation, Wants, parse
from mpirt.rsh.channels import V4, V5
from mpirt.rsh.outlets import own_line
from mpirt.rsh.relay import Relay
from mpirt.rsh.session import Session
from mpirt.rsh.signals import Signals
from mpirt.rsh.starting import Task
from mpirt.rsh.wrapper import Order, command_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpirt.rsh.log import Log

CONNECT_TIMEOUT = "MPIRT_CONNECT_TIMEOUT"

_INTERRUPTED = 130
_DEFAULT_CONNECT_SECONDS = 60.0
_LONGEST_CONNECT_SECONDS = 86400
# Python refuses to read numbers of thousands of digits.
_MOST_DIGITS = 20
_PROTOCOLS = {"v4": V4, "v5": V5}
_STDIN, _STDOUT, _STDERR = 0, 1, 2
# The same on every Linux.
_DEV_NULL = os.makedev(1, 3)

_HELP = """\
Usage: mpirt-rsh [options] HOST COMMAND...

Runs COMMAND in a worker pod through the Kubernetes API, and ends as it ends. HOST is the pod: its name, or
POD.SERVICE.NAMESPACE.svc...; USER@HOST is understood. COMMAND is one shell string for the pod's /bin/sh, joined
by spaces as ssh does it.

For launchers:
  OMPI_MCA_plm_rsh_agent=mpirt-rsh mpirun ...                     Open MPI 4
  PRTE_MCA_plm_ssh_agent=mpirt-rsh mpirun ...                     Open MPI 5
  HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC=mpirt-rsh mpiexec ...    MPICH, Intel MPI
  and as /etc/mpi/kubexec.sh or under the name ssh for horovodrun.

Examples:
  mpirt-rsh worker-0 hostname
  mpirt-rsh worker-0 'cd /data && ls | wc -l'
  tar c . | mpirt-rsh worker-0 'tar x -C /work'

Options: those of ssh, as far as they have a meaning here:
  -n                     no stdin
  -o ConnectTimeout=N    seconds to wait for the pod and its container (60)
  -o ConnectionAttempts=N
  --help, --version

Environment:
  KUBECONFIG             the cluster; without it ~/.kube/config, or the pod's own service account
  HTTPS_PROXY, NO_PROXY  the way to it, as for kubectl
  MPIRT_CONTAINER        the container, where a pod has several
  MPIRT_CONNECT_TIMEOUT  as ConnectTimeout
  MPIRT_PROTOCOL         v4 or v5, the exec protocol that is tried first (v4)
  MPIRT_LOG=debug        says on stderr what happens, and when

Exit code: the command's own, 128 and the number for a signal; from 240 on, see docs/exit-codes.md.
"""


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
        _say(f"{our_mistake(error)}, with {names.LOG_VARIABLE}=debug")
        return ExitCode.INTERNAL


def _run(asked: Invocation, environ: Mapping[str, str]) -> int:
    begin = time.monotonic()
    signals = Signals()
    words = launchers.prepared(asked.words)
    # The command that we were given, byte by byte: Python has made text of it as the locale has it.
    command = command_line(words, encoding=sys.getfilesystemencoding())
    order = Order(_nonce(), command, has_stdin=not asked.null_stdin and _has_stdin())
    task = Task(
        asked.pod,
        order,
        container=environ.get(names.CONTAINER_VARIABLE, ""),
        connect_seconds=_connect_seconds(asked, environ),
        attempts=asked.attempts,
        protocol=_protocol(environ),
    )
    endpoint = find_endpoint(environ)
    namespace = asked.namespace or endpoint.namespace
    log = _log(environ, begin)
    if log is not None:
        found = f"{endpoint.route}, by {endpoint.origin}"
        _say(log.line(f"pod {asked.pod} in namespace {namespace} at {found}", time.monotonic()))
    relay = Relay(
        Session(task, now=time.monotonic(), jitter=_jitter),
        ExecApi(Dialer(endpoint)),
        signals,
        namespace=namespace,
        pod=asked.pod,
        jitter=_jitter,
        log=log,
        # A daemon without its launcher has nothing to do, and mpirun leaves agents behind when it ends early.
        parent=os.getppid() if launchers.starts_daemon(words) else 0,
    )
    return relay.run()


def _tell(wants: Wants) -> int:
    if wants.what == "help":
        _write(_STDOUT, _HELP.encode())
    else:
        # Brings email and zipfile, which no remote command needs.
        from importlib.metadata import version  # noqa: PLC0415

        # ssh -V writes to stderr, and who asks that way looks there.
        _write(_STDERR if wants.what == "V" else _STDOUT, f"{names.RSH} {version('mpirt')}\n".encode())
    return ExitCode.OK


def _connect_seconds(asked: Invocation, environ: Mapping[str, str]) -> float:
    if asked.connect_seconds is not None:
        return asked.connect_seconds
    text = environ.get(CONNECT_TIMEOUT, "")
    if not text:
        return _DEFAULT_CONNECT_SECONDS
    is_number = text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS
    if not (is_number and 0 < int(text) <= _LONGEST_CONNECT_SECONDS):
        raise UsageError(
            f"{CONNECT_TIMEOUT}={text[:20]}: expected a number of seconds from 1 to {_LONGEST_CONNECT_SECONDS}"
        )
    return float(text)


def _protocol(environ: Mapping[str, str]) -> str:
    name = environ.get(names.PROTOCOL_VARIABLE) or "v4"
    if name not in _PROTOCOLS:
        raise UsageError(f"{names.PROTOCOL_VARIABLE}={name[:20]}: expected {' or '.join(_PROTOCOLS)}")
    return _PROTOCOLS[name]


def _log(environ: Mapping[str, str], begin: float) -> Log | None:
    if environ.get(names.LOG_VARIABLE) != "debug":
        return None
    # Who asks for it has the time.
    from mpirt.rsh.log import Log  # noqa: PLC0415

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


def _nonce() -> str:
    return os.urandom(8).hex()


def _jitter() -> float:
    # The random module costs a third of what ssl does.
    return int.from_bytes(os.urandom(4)) / 2**32


def _say(line: str) -> None:
    _write(_STDERR, own_line(line))


def _write(fd: int, data: bytes) -> None:
    """Write at once and unbuffered; nobody may be there to read it."""
    try:  # noqa: SIM105  contextlib costs half a millisecond
        os.write(fd, data)
    except OSError:
        pass
