"""
The task of one command: what its words ask for, and what the environment does.

Owns: the variables that are about one command only. The environment is handed in: it may be another process's.
"""

from __future__ import annotations

from mpirt import names
from mpirt.errors import UsageError
from mpirt.kubeapi.request.channels import V4, V5
from mpirt.rsh.invocation import seconds
from mpirt.rsh.invocation.order import SHELL, Order, command_line
from mpirt.rsh.session.starting import WATCH_AFTER, Task
from mpirt.rsh.tasks import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpirt.rsh.invocation.argv import Invocation
    from mpirt.rsh.session.holding import Holding

CONNECT_TIMEOUT = "MPIRT_CONNECT_TIMEOUT"

_DEFAULT_CONNECT_SECONDS = 60.0
_PROTOCOLS = {"v4": V4, "v5": V5}


def make_task(
    asked: Invocation,
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    pod: str,
    nonce: str,
    has_stdin: bool,
    encoding: str,
    holding: Holding | None,
    watch_after: float = WATCH_AFTER,
) -> Task:
    """`words` are those of the command as they are sent; `encoding` is what words and environment were read in."""
    order = Order(
        nonce,
        # The command that we were given, byte by byte: Python has made text of it as the locale has it.
        command_line(words, encoding=encoding),
        has_stdin=has_stdin and not asked.null_stdin,
        environment=_exported(asked, environ, encoding),
        shell=environ.get(names.SHELL_VARIABLE) or SHELL,
    )
    return Task(
        pod,
        order,
        container=asked.container or environ.get(names.CONTAINER_VARIABLE, ""),
        connect_seconds=connect_seconds(asked, environ),
        attempts=asked.attempts,
        protocol=_protocol(environ),
        holding=holding,
        grace=settings.grace(environ),
        pace=settings.pace(holding, alive_seconds=asked.alive_seconds, alive_count=asked.alive_count),
        host=asked.pod if asked.is_address else "",
        watch_after=watch_after,
    )


def connect_seconds(asked: Invocation, environ: Mapping[str, str]) -> float:
    """For how long a shell in the pod is looked for."""
    if asked.connect_seconds is not None:
        return asked.connect_seconds
    return seconds.of_variable(environ, CONNECT_TIMEOUT, _DEFAULT_CONNECT_SECONDS, may_be_zero=False)


def wants_log(asked: Invocation, environ: Mapping[str, str]) -> bool:
    """Whether the person wants to see everything."""
    return asked.verbose or environ.get(names.LOG_VARIABLE) == "debug"


def _exported(asked: Invocation, environ: Mapping[str, str], encoding: str) -> Mapping[str, str]:
    if not (asked.send_env or asked.set_env):
        return {}
    # Few launchers give variables so.
    from mpirt.rsh.invocation.environment import exported  # noqa: PLC0415

    return exported(asked.send_env, asked.set_env, environ, encoding=encoding)


def _protocol(environ: Mapping[str, str]) -> str:
    name = environ.get(names.PROTOCOL_VARIABLE) or "v4"
    if name not in _PROTOCOLS:
        raise UsageError(f"{names.PROTOCOL_VARIABLE}={name[:20]}: expected {' or '.join(_PROTOCOLS)}")
    return _PROTOCOLS[name]
