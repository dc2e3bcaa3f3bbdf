"""
How a command ends that the wrapper runs: one that is told to, and the outcome of one that has.

Owns: the steps from TERM to KILL to giving up, and the rules that make an exit code of a report. No I/O.
"""

from __future__ import annotations

from mpirt.errors import ExitCode
from mpirt.rsh import wrapper
from mpirt.rsh.channels import ExitedWith, Failed, Status, Succeeded
from mpirt.rsh.ending import GRACE, LAST_WORD, STATUS_SECONDS, Ending

# From one piece of output after the report to the next: what is still on its way comes without a pause.
_OUTPUT_SECONDS = 5.0


class Termination:
    """TERM, a grace, KILL, and a moment for the report."""

    __slots__ = ("_kill_at", "_killed", "_over_at", "ending")

    def __init__(self, ending: Ending, now: float) -> None:
        self.ending = ending
        self._kill_at = now + GRACE
        self._killed = False
        self._over_at = self._kill_at + LAST_WORD

    @property
    def wake(self) -> float:
        """When the next step is due."""
        return self._over_at if self._killed else self._kill_at

    def hurry(self, now: float) -> None:
        """Asked a second time: no grace."""
        self._kill_at = min(self._kill_at, now)
        self._over_at = min(self._over_at, now + LAST_WORD)

    def step(self, now: float) -> bytes:
        """What is to be sent to the wrapper now, if anything."""
        if self._killed or now < self._kill_at:
            return b""
        self._killed = True
        return wrapper.ending_by("KILL")

    def is_over(self, now: float) -> bool:
        """Whether there is no more use in waiting for the report."""
        return self._killed and now >= self._over_at


class Report:
    """The command's reported end, and the witnesses to it."""

    __slots__ = ("_by", "_listening", "_status", "code", "has_output")

    def __init__(self) -> None:
        self.code: int | None = None
        self.has_output = False
        """Whether all that the command wrote to its stdout has come."""
        self._status: Status | None = None
        self._listening = True
        self._by = 0.0

    @property
    def wake(self) -> float | None:
        """When waiting ends, at the latest."""
        return self._by if self.code is not None and self._listening else None

    def exited(self, code: int, now: float) -> None:
        """The wrapper reports the command's end."""
        self.code = code
        self._wait(now)

    def output(self, now: float) -> None:
        """More output has come."""
        if not self.has_output:
            self._wait(now)

    def output_is_complete(self, now: float) -> None:
        """All that the command wrote has come."""
        self.has_output = True
        self._wait(now)

    def listen(self, now: float, *, listening: bool) -> None:
        """Whether what comes is being read: while it isn't, nothing can be late."""
        self._listening = listening
        self._wait(now)

    def server_says(self, status: Status) -> None:
        """The server's word on the end."""
        self._status = status

    def is_settled(self, now: float) -> bool:
        """Whether nothing more is to be expected."""
        if self.has_output and self._status is not None:
            return True
        return self._listening and now >= self._by

    def _wait(self, now: float) -> None:
        self._by = now + (STATUS_SECONDS if self.has_output else _OUTPUT_SECONDS)

    def outcome(self, pod: str) -> tuple[int, str]:
        """The exit code, and a line where it isn't simply the command's."""
        code = ExitCode.UNKNOWN_END if self.code is None else self.code
        match self._status:
            case Succeeded() if code != 0:
                return ExitCode.UNKNOWN_END, self._contradiction(pod, 0)
            case ExitedWith(other) if code != other:
                return ExitCode.UNKNOWN_END, self._contradiction(pod, other)
            case Failed(reason, message) if code == 0 and not self.has_output:
                return ExitCode.UNKNOWN_END, self._cut(pod, message or reason)
        if code == 0 and not self.has_output:
            return ExitCode.UNKNOWN_END, self._cut(pod, "the connection ended first")
        return code, ""

    def _contradiction(self, pod: str, other: int) -> str:
        return f"the command in pod {pod} reports code {self.code}, the server {other}: one of them can't be right"

    def _cut(self, pod: str, why: str) -> str:
        said = why or "no reason given"
        return f"the command in pod {pod} ended with code 0, but not all of its output came: {said}"
