"""
How a running command is ended, by a keeper or by the wrapper.

Owns: the reasons, and how long each step of it may take. No I/O.
"""

from __future__ import annotations

from mpirt.errors import ExitCode
from mpirt.values import value

SIGNALLED = 128
_SIGPIPE = 13
# From TERM to KILL. A launcher that wants to be rid of us waits 5 s, and a pod's deletion may not take longer.
GRACE = 3.0
# From KILL to the report of it.
LAST_WORD = 1.5
# From the report to the server's own word on it, which comes when all output is through. It changes the outcome
# only where it contradicts.
STATUS_SECONDS = 0.5


@value
class Ending:
    """Why a running command is ended."""

    code: int
    line: str
    is_ours: bool = False
    """A signal to us ends it: then its own code counts, as when it had ended by itself."""

    def after(self, code: int | None) -> tuple[int, str]:
        """The outcome of a command that ended with a code when it was ended for a reason of the pod's."""
        return self.code, f"{self.line}; the command ended with {code}"


def left_open(pod: str) -> str:
    """The line where output is cut that isn't the command's own any more."""
    return f"pod {pod}: something that the command left behind still has its output open; what that writes is lost"


def broken_stdin(why: str) -> Ending:
    """A command that takes the beginning of its stdin for the whole must not succeed."""
    return Ending(ExitCode.UNKNOWN_END, f"the command was ended because its stdin can't be read: {why}")


def broken_pipe() -> Ending:
    """Nobody reads our stdout any more."""
    return Ending(SIGNALLED + _SIGPIPE, "", is_ours=True)
