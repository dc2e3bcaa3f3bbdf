"""
The errors a person can meet, and the exit codes that stand for them.

A command's own code passes through untouched, so the codes here sit at the top of the range, where programs
rarely put theirs; docs/exit-codes.md is the same table for people. 255 is what ssh says when ssh failed:
launchers know it.
"""

from __future__ import annotations

from enum import IntEnum

# Of what others have written.
_MESSAGE_LIMIT = 256


class ExitCode(IntEnum):
    """What mpirt's own programs end with when it was not the command that ended them."""

    OK = 0
    USAGE = 240
    CONFIG = 241
    REFUSED = 242
    NO_POD = 243
    UNREACHABLE = 244
    PEER = 245
    POD_DELETED = 246
    EVICTED = 247
    CONTAINER_DIED = 248
    NODE_LOST = 249
    CONNECTION_LOST = 250
    UNKNOWN_END = 251
    NO_SHELL = 252
    NOT_READY = 253
    INTERNAL = 255


class MpirtError(Exception):
    """Base of all. The message is one line: what happened, to what, and what to do about it."""

    code = ExitCode.INTERNAL


class UsageError(MpirtError):
    """The words on the command line can't be honoured; nothing was contacted."""

    code = ExitCode.USAGE


class ConfigError(MpirtError):
    """The environment, a kubeconfig or a token file names no API server, or an invalid setting."""

    code = ExitCode.CONFIG


class Refused(MpirtError):
    """Authentication or authorization failed (401, 403)."""

    code = ExitCode.REFUSED


class NoPod(MpirtError):
    """The pod does not exist, or has no running container within the time allowed."""

    code = ExitCode.NO_POD


class NotReady(MpirtError):
    """Fewer workers are Ready than were waited for, and the time is over."""

    code = ExitCode.NOT_READY


class NoShell(MpirtError):
    """The container runs, but no command can be started in it: no working /bin/sh, or no place for a keeper."""

    code = ExitCode.NO_SHELL


class Unreachable(MpirtError):
    """The API server, or the way through it to the node, did not answer before the command was started."""

    code = ExitCode.UNREACHABLE


class PeerError(MpirtError):
    """The other side violated the protocol."""

    code = ExitCode.PEER


class SpecError(MpirtError):
    """An invalid value: `field` is its path, the message says what is wrong with it."""

    code = ExitCode.CONFIG

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


def internal_error(error: Exception) -> str:
    """The line for an unexpected error: where it happened, and not its text, which may hold a secret."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}" if trace else "nowhere"
    return f"internal error: {type(error).__name__} at {where}; please report it"


def one_line(text: str) -> str:
    """Make foreign text fit to print: one line, no control characters, cut short."""
    printable = "".join(char if char.isprintable() else " " for char in text[: 4 * _MESSAGE_LIMIT])
    words = " ".join(printable.split())
    return words if len(words) <= _MESSAGE_LIMIT else words[: _MESSAGE_LIMIT - 3] + "..."
