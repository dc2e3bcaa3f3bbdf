"""
How a running command is ended.

Owns: the reasons, and how long each step of it may take. No I/O.
"""

from __future__ import annotations

from mpirt.errors import ExitCode
from mpirt.values import Value

SIGNALLED = 128
# What batch systems send to announce something; the other signals ask for an end.
PASSED_ON = ("USR1", "USR2")
_SIGPIPE = 13
# From TERM to KILL when a signal ends the agent: a launcher that ends its agents waits 5 s.
_SIGNALLED_SECONDS = 3.0
# The same when the lease is over: what Kubernetes gives a pod by default.
_LEASE_SECONDS = 30.0
# Of a deleted pod's grace, for the command's end to be reported: its last output, its code, our own words on it.
_REPORT_SECONDS = 3.0
# From KILL to the report of it.
LAST_WORD = 1.5
# From the report to the server's own word on it, which comes when all output is through. It changes the outcome
# only where it contradicts.
STATUS_SECONDS = 0.5


class Grace(Value):
    """How many seconds a command has from TERM to KILL."""

    asked: float | None = None
    """As many as the environment wants, whatever the reason is."""

    @property
    def on_signal(self) -> float:
        """When a signal to the agent ends it."""
        return _SIGNALLED_SECONDS if self.asked is None else self.asked

    @property
    def after_lease(self) -> float:
        """When its lease is over."""
        return _LEASE_SECONDS if self.asked is None else self.asked

    def deleted(self, seconds: float | None) -> float:
        """
        When its pod is deleted, whose own grace period has so many, as far as is known.

        They are counted from when the deletion is seen: the moment in the pod object is by the API server's clock.
        """
        if seconds is None:
            return self.on_signal
        ours = max(seconds - _REPORT_SECONDS, seconds / 2)
        return ours if self.asked is None else min(ours, self.asked)


DEFAULT_GRACE = Grace()


class Ending(Value):
    """Why a running command is ended."""

    code: int
    line: str
    is_ours: bool = False
    """A signal to us ends it: then its own code counts, as when it had ended by itself."""

    def after(self, code: int | None) -> tuple[int, str]:
        """The outcome of a command that ended with a code when it was ended for a reason of the pod's."""
        return self.code, f"{self.line}; the command ended with {code}"


def out_of_lease(pod: str, lease: float) -> Ending:
    """The keeper has ended it without a connection; we came back before it could report that."""
    line = f"the command in pod {pod} was ended there: it had no connection for its lease of {lease:.0f} s"
    return Ending(ExitCode.CONNECTION_LOST, line)


def fenced(pod: str) -> str:
    """The line where a launcher has outlived the start of the next one."""
    return f"the command in pod {pod} was ended by a later launcher of its job (MPIRT_FENCE)"


def ended_from_outside(pod: str, code: int) -> Ending:
    """As any other process that something in the pod ends, it has its own code, unless that is 0."""
    line = f"something in pod {pod} has signalled the command's keeper"
    return Ending(code or ExitCode.UNKNOWN_END, line)


def ended_before(pod: str) -> Ending:
    """A process of ours has ended it, and was killed with the reason."""
    line = f"the command in pod {pod} was ended by a switchboard that was killed before it could say why"
    return Ending(ExitCode.UNKNOWN_END, line)


def left_open(pod: str) -> str:
    """The line where output is cut that isn't the command's own any more."""
    return f"pod {pod}: something that the command left behind still has its output open; what that writes is lost"


def broken_stdin(why: str) -> Ending:
    """A command that takes the beginning of its stdin for the whole must not succeed."""
    return Ending(ExitCode.UNKNOWN_END, f"the command was ended because its stdin can't be read: {why}")


def broken_stdout(pod: str, why: str) -> Ending:
    """Our stdout has no reader any more; or it can't be written, which must not look like a reader's wish."""
    if why:
        return Ending(ExitCode.UNKNOWN_END, f"the output of pod {pod} can't be written: {why}")
    return Ending(SIGNALLED + _SIGPIPE, "", is_ours=True)
