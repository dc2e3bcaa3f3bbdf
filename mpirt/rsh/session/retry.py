"""
What to do about a command that could not be started.

Owns: the table of answers, how long to wait before the next attempt, and when to give up before GO. After GO only
the table and the delays are used (patience.py). No I/O; clock and jitter are handed in.

The table goes by what servers and runtimes say, because their status codes alone don't distinguish a container
that will be up in a moment from one that never will. After an answer that is not in the table, the attempt is
repeated while there is time, which does no harm.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from mpirt.backoff import Backoff
from mpirt.errors import ConfigError, ExitCode, MpirtError, NoPod, NoShell, PeerError, Refused, Unreachable
from mpirt.kubeapi.access.credentials import PluginFailed
from mpirt.kubeapi.request.answers import ApiError, Forbidden, ProtocolRefused, TimedOut
from mpirt.kubeapi.request.channels import V4, V5, ExitedWith, Failed, Status
from mpirt.rsh.pod.facts import NAME_ONE
from mpirt.rsh.protocol.entrance import NotAnswered, NotStarted
from mpirt.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_DELAY = 0.25
_LONGEST_DELAY = 5.0
# For a container that is about to be started, as far as it is known.
EARLY_SECONDS = 3.0
TOO_EARLY = (ExitCode.NO_POD, ExitCode.REFUSED, ExitCode.UNREACHABLE)
"""How commands end where the container, the right to enter it, or the way to its node may be there soon."""
# For a pod that is being replaced, a Role that does not name a new worker yet, a user who is about to log in. A
# mistyped name or a wrong Role should not take longer.
BRIEFLY_SECONDS = 5.0
# An API server that has just begun listens before it knows the Roles, and refuses service accounts for a while
# (kubernetes#121635). Only one that was away can have just begun.
REFUSALS_PASS_SECONDS = 10.0
# An attempt that had no more time than this was cut short: that it got no answer says nothing about the server.
_CUT_SHORT_SECONDS = 2.0


class Next(Enum):
    """What to do."""

    AGAIN = "again"
    """Try again: something on the way isn't there, or has too much to do."""
    WAIT = "wait"
    """Wait for the pod, which is on its way."""
    BRIEFLY = "briefly"
    """Try again, but not for long: there is no such pod, no right to enter it, or no credentials."""
    OTHER_PROTOCOL = "other protocol"
    """Try again at once, with the other sub-protocol."""
    CHOOSE = "choose"
    """Look at the pod, and name a container."""
    GIVE_UP = "give up"
    """It will not get better."""


class Row(Value):
    """One line of the table: an answer with this status (0: any) and this text in it (empty: any)."""

    status: int
    text: str
    next: Next
    error: type[MpirtError] | None = None
    """What it is called in the end; None leaves it as it came."""
    remedy: str = ""


_SHELL = "mpirt needs a /bin/sh in the worker's image"
_CONTAINER = "is what --container or MPIRT_CONTAINER names one of its containers?"
_FOLDER = "is there the worker's workingDir, and may its user enter it?"

# What runtimes say of the exec's own process. Anything else that is missing or denied (a socket, a device, a
# cgroup, the runtime's program) may be there in a moment.
_NO_SHELL = (
    # runc, before it executes and as it does
    *(
        f"{where}{why}"
        for where in ('exec: "/bin/sh": ', 'exec: "/bin/sh": stat /bin/sh: ', "exec /bin/sh: ")
        for why in (
            "executable file not found",
            "no such file or directory",
            "permission denied",
            "exec format error",
            "is a directory",
            "not a directory",
        )
    ),
    # runc up to 1.0
    "exec user process caused",
    # crun, whatever is wrong with it, and up to 1.8
    "`/bin/sh`",
    "open executable",
)

# The first line that fits counts. Texts are those of Kubernetes 1.20 to 1.37, containerd, CRI-O and Docker.
TABLE = (
    Row(400, "container name must be specified", Next.CHOOSE, ConfigError, NAME_ONE),
    Row(400, "is not valid for pod", Next.GIVE_UP, ConfigError, _CONTAINER),
    Row(400, "does not have a host assigned", Next.WAIT, NoPod),
    Row(400, "completed pod", Next.GIVE_UP, NoPod),
    Row(400, "", Next.OTHER_PROTOCOL),
    Row(404, "pod does not exist", Next.WAIT, NoPod),
    Row(404, "", Next.BRIEFLY, NoPod),
    # The way to a runtime or a tunnel: a socket that isn't there for a moment is no shell that isn't there.
    Row(0, "error dialing backend", Next.AGAIN),
    Row(0, "dial unix", Next.AGAIN),
    Row(0, "chdir to", Next.GIVE_UP, NoShell, _FOLDER),
    *(Row(0, text, Next.GIVE_UP, NoShell, _SHELL) for text in _NO_SHELL),
    Row(0, "container not found", Next.WAIT, NoPod),
    Row(0, "CONTAINER_CREATED", Next.WAIT, NoPod),
    Row(0, "CONTAINER_EXITED", Next.WAIT, NoPod),
    Row(0, "not running", Next.WAIT, NoPod),
    Row(0, "not created or running", Next.WAIT, NoPod),
    Row(0, "No agent available", Next.AGAIN),
    *(Row(status, "", Next.AGAIN) for status in (429, 500, 502, 503, 504)),
)

_REFUSED_PROTOCOL = Row(403, "", Next.OTHER_PROTOCOL)
_HOPELESS = Row(0, "", Next.GIVE_UP)
_HOPEFUL = Row(0, "", Next.AGAIN)
_MAY_PASS = Row(0, "", Next.BRIEFLY)


def advice(error: MpirtError) -> Row:
    """The line of the table for what went wrong."""
    if isinstance(error, ProtocolRefused):
        return _REFUSED_PROTOCOL
    if isinstance(error, PluginFailed | Forbidden):
        return _MAY_PASS
    if isinstance(error, ConfigError | Refused | NoShell):
        return _HOPELESS
    status, text = (
        (error.failure.status, error.failure.message) if isinstance(error, ApiError) else (0, str(error))
    )
    # Some put one message in quotes into another.
    text = text.replace('\\"', '"')
    for row in TABLE:
        if row.status in (0, status) and row.text in text and (row.text or status):
            return row
    return _HOPEFUL if isinstance(error, Unreachable) else _HOPELESS


def not_started(pod: str, status: Status | None, how: str) -> MpirtError:
    """What to call it when a connection was opened and then ended, before the shell in the pod said a word."""
    match status:
        case Failed(reason, message):
            return NotStarted(
                f"the command could not be started in pod {pod}: {message or reason or 'no reason given'}"
            )
        case ExitedWith(126 | 127 as code):
            return NoShell(f"no shell could be started in pod {pod} (code {code}); {_SHELL}")
        case ExitedWith(code):
            return NotStarted(f"the shell in pod {pod} ended before it said a word (code {code})")
    return NotStarted(
        f"the connection to pod {pod} ended before its shell said a word: {how or 'nothing was said'}"
    )


class Again(Value):
    """Try again at that moment, with that sub-protocol; `look` at the pod meanwhile, and name its container."""

    at: float
    protocol: str
    look: bool = False
    choose: bool = False


class GiveUp(Value):
    """Don't. This is the error to end with."""

    error: MpirtError


class Attempts:
    """
    The attempts to start one command.

    `limit` is how many there may be, 0 for as many as fit into the time; `protocol` is the first one's. With
    `is_early`, the pod is on its way: it is tried briefly, without longer and longer delays.
    """

    def __init__(
        self,
        now: float,
        seconds: float,
        *,
        limit: int,
        jitter: Callable[[], float],
        protocol: str = V4,
        is_early: bool = False,
    ) -> None:
        self.deadline = now + seconds
        self.protocol = protocol
        self._since = now
        self._limit, self._is_early = limit, is_early
        self._backoff = Backoff(_FIRST_DELAY, _FIRST_DELAY, jitter) if is_early else backoff(jitter)
        self._made = 0
        self._brief_since: float | None = None
        self._away_at: float | None = None
        self._awaited_since = now
        self._chose = False
        self._refused: set[str] = set()
        self._said: tuple[MpirtError, Row] | None = None

    def failed(self, error: MpirtError, now: float) -> Again | GiveUp:
        """One has failed."""
        row = _HOPEFUL if self._may_not_know_roles(error, now) else advice(error)
        if row.next is Next.GIVE_UP:
            return GiveUp(_named(error, row))
        if row.next is Next.OTHER_PROTOCOL:
            return self._other_protocol(error, now)
        self._made += 1
        error, row = self._said = self._most_telling(error, row, now)
        self._remember(error, row, now)
        # Asked once, a server gets its answer at once; one that goes on asking is no better than any other no.
        chooses = row.next is Next.CHOOSE and not self._chose
        self._chose = self._chose or chooses
        pause = self._backoff.next(asked_delay(error))
        at = now if chooses else now + pause
        is_too_early = self._is_early and at >= self._since + EARLY_SECONDS
        if at >= self._end or self._made == self._limit or is_too_early:
            return GiveUp(self._gave_up(error, row, now))
        self._awaited_since = at
        look = row.next in (Next.WAIT, Next.CHOOSE)
        return Again(at, self.protocol, look=look, choose=row.next is Next.CHOOSE)

    def opened(self, now: float) -> None:
        """The way is open: from now on it is the shell whose answer is awaited."""
        self._awaited_since = now

    def out_of_time(self, now: float) -> MpirtError | None:
        """The error to end with when the deadline comes between two attempts; None when none was made."""
        return None if self._said is None else self._gave_up(*self._said, now)

    @property
    def _end(self) -> float:
        """When the last attempt has to be made."""
        if self._brief_since is None:
            return self.deadline
        return min(self.deadline, self._brief_since + BRIEFLY_SECONDS)

    def _may_not_know_roles(self, error: MpirtError, now: float) -> bool:
        """Whether this is a refusal by an API server that was away a moment ago."""
        was_away = self._away_at is not None and now - self._away_at < REFUSALS_PASS_SECONDS
        return was_away and isinstance(error, Forbidden)

    def _remember(self, error: MpirtError, row: Row, now: float) -> None:
        """Since when there is no pod, right or credentials, and nothing else; and when the API server was away."""
        if row.next is not Next.BRIEFLY:
            self._brief_since = None
        elif self._brief_since is None:
            self._brief_since = now
        if isinstance(error, Unreachable):
            self._away_at = now

    def _most_telling(self, error: MpirtError, row: Row, now: float) -> tuple[MpirtError, Row]:
        """What was said before, where the deadline left this attempt no time to hear an answer."""
        had_no_time = now >= self.deadline and self.deadline - self._awaited_since < _CUT_SHORT_SECONDS
        cut_short = had_no_time and isinstance(error, TimedOut | NotAnswered | PluginFailed)
        return self._said if cut_short and self._said is not None else (error, row)

    def _other_protocol(self, error: MpirtError, now: float) -> Again | GiveUp:
        self._refused.add(self.protocol)
        if self._refused >= {V4, V5}:
            return GiveUp(error)
        self.protocol = V5 if self.protocol == V4 else V4
        return Again(now, self.protocol)

    def _gave_up(self, error: MpirtError, row: Row, now: float) -> MpirtError:
        times = f"{self._made} attempts" if self._made > 1 else "1 attempt"
        return _named(error, row, f"gave up after {times} in {max(now - self._since, 0):.0f} s")


def backoff(jitter: Callable[[], float]) -> Backoff:
    """The delays between attempts, before GO and after."""
    return Backoff(_FIRST_DELAY, _LONGEST_DELAY, jitter)


def asked_delay(error: MpirtError) -> float | None:
    """How long the server asks to be left alone, if it does."""
    return error.failure.retry_after if isinstance(error, ApiError) else None


def _named(error: MpirtError, row: Row, *more: str) -> MpirtError:
    """The error by the table's name for it, with all that there is to say."""
    added = [part for part in (*more, row.remedy) if part]
    if row.error is None and not added:
        return error
    kind = row.error or next((kind for kind in _KINDS if isinstance(error, kind)), Unreachable)
    return kind("; ".join([str(error), *added]))


_KINDS = (NoShell, ConfigError, Refused, NoPod, PeerError)
