"""
How a command ends that the wrapper runs: one that is told to, and the outcome of one that has.

Owns: the steps from TERM to KILL to giving up, and the rules that make an exit code of a report. No I/O.
"""

from __future__ import annotations

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.channels import ExitedWith, Failed, Status, Succeeded
from mpirt.rsh.protocol import wrapper
from mpirt.rsh.session.ending import LAST_WORD, STATUS_SECONDS, Ending

_KILL = 9
# From one piece of output after the report to the next: what is still on its way comes without a pause.
_OUTPUT_SECONDS = 5.0
# The same for what the command has left behind, and for all of that, as a keeper has it.
_LEFT_SECONDS = 1.0
_LONGEST_LEFT = 30.0
# From one telling to the next, for what is started meanwhile: each costs the pod a look at all of its processes.
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 0.8


class Termination:
    """A signal, said again and again, a grace, KILL, and a moment for the report."""

    __slots__ = ("_again_at", "_kill_at", "_killed", "_over_at", "_pause", "_signal", "ending")

    def __init__(self, ending: Ending, signal: int, grace: float, now: float) -> None:
        self.ending = ending
        self._signal = signal
        self._again_at = now
        self._pause = _FIRST_PAUSE
        self._kill_at = now + grace
        self._killed = False
        self._over_at = self._kill_at + LAST_WORD

    @property
    def wake(self) -> float:
        """When the next step is due."""
        return self._over_at if self._killed else min(self._again_at, self._kill_at)

    def shorten(self, grace: float, now: float) -> None:
        """Asked once more, and with no more time than before."""
        self._kill_at = min(self._kill_at, now + grace)
        self._over_at = min(self._over_at, self._kill_at + LAST_WORD)

    def step(self, now: float) -> bytes:
        """What is to be sent to the wrapper now, if anything."""
        if self._killed or now < min(self._again_at, self._kill_at):
            return b""
        if now < self._kill_at:
            self._again_at, self._pause = now + self._pause, min(2 * self._pause, _LONGEST_PAUSE)
            return wrapper.ending_by(self._signal)
        self._killed = True
        return wrapper.ending_by(_KILL)

    def is_over(self, now: float) -> bool:
        """Whether there is no more use in waiting for the report."""
        return self._killed and now >= self._over_at


class Report:
    """The command's reported end, and the witnesses to it."""

    __slots__ = ("_by", "_deaf_since", "_left_by", "_left_open", "_listening", "_status", "code", "has_output")

    def __init__(self) -> None:
        self.code: int | None = None
        self.has_output = False
        """Whether all that the command wrote to its stdout has come."""
        self._status: Status | None = None
        self._listening = True
        self._by = self._left_by = self._deaf_since = 0.0
        self._left_open = False

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
        if self._left_open or not self.has_output:
            self._wait(now)

    def output_is_complete(self, now: float, *, left_open: bool) -> None:
        """All that the command wrote has come. With `left_open`, what it left behind may go on writing."""
        self.has_output = True
        self._left_open, self._left_by = left_open, now + _LONGEST_LEFT
        self._wait(now)

    def listen(self, now: float, *, listening: bool) -> None:
        """Whether what comes is being read: while it isn't, nothing can be late."""
        if listening and not self._listening:
            self._left_by += now - self._deaf_since
        self._listening, self._deaf_since = listening, now
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
        if self._left_open:
            self._by = min(now + _LEFT_SECONDS, self._left_by)
        else:
            self._by = now + (STATUS_SECONDS if self.has_output else _OUTPUT_SECONDS)

    @property
    def is_cut(self) -> bool:
        """Whether what the command left behind may still write: the server's word comes at the end of it all."""
        return self._left_open and not isinstance(self._status, Succeeded | ExitedWith)

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
