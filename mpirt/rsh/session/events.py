"""
What happens to a session, and what it wants done about it.

Owns: the words between the state machine and its I/O. Values only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpirt.values import Value

if TYPE_CHECKING:
    from mpirt.errors import MpirtError
    from mpirt.rsh.pod.facts import Pod
    from mpirt.rsh.session.task import Record


class Opened(Value):
    """The exec's WebSocket is open, with this sub-protocol."""

    protocol: str


class NotOpened(Value):
    """It could not be opened."""

    error: MpirtError


class Received(Value):
    """A whole WebSocket message has come."""

    message: bytes


class Closed(Value):
    """The connection has ended; how, in a few words."""

    how: str


class StdinRead(Value):
    """Bytes were read from our own stdin; none means its end."""

    data: bytes


class StdinBroken(Value):
    """Our own stdin can't be read any more, which is not its end; why."""

    why: str


class Signalled(Value):
    """A signal came: its name without SIG, and its number."""

    name: str
    number: int


class StdoutBroken(Value):
    """Our stdout can't be written any more; why, or nothing if it has no reader."""

    why: str = ""


class Written(Value):
    """How much of the command's output has been written, or dropped because it has no reader, in all."""

    stdout: int
    stderr: int


class Listening(Value):
    """Whether we still read the connection: not while too much output waits for a slow reader."""

    listening: bool


class PodFound(Value):
    """The name that was given is a host's; this is the name of the pod that has it."""

    pod: str


class PodSeen(Value):
    """The pod as it is now."""

    pod: Pod
    is_first: bool = False
    """Whether the session begins with this one: what was reported before may be older than its command."""


class PodGone(Value):
    """There is no pod of this name."""


class ApiAnswers(Value):
    """The API server can be heard."""


class PodHidden(Value):
    """The API server answers, but refuses to show the pod; why."""

    why: str


class ApiSilent(Value):
    """The API server can't be heard; why."""

    why: str


class Kept(Value):
    """The record is where it outlives this process, with all output that was written before it."""

    record: Record | None


class UsageWanted(Value):
    """`mpirt ps` looks at the command: its keeper is to report what it uses."""


class Tick(Value):
    """Time has passed."""


Event = (
    Opened
    | NotOpened
    | Received
    | Closed
    | StdinRead
    | StdinBroken
    | Signalled
    | StdoutBroken
    | Written
    | Listening
    | PodFound
    | PodSeen
    | PodGone
    | PodHidden
    | ApiAnswers
    | ApiSilent
    | Kept
    | UsageWanted
    | Tick
)


class Dial(Value):
    """Open the exec's WebSocket, with this sub-protocol, in this container (empty: the only one)."""

    protocol: str
    container: str
    seconds: float
    credentials_seconds: float
    """For a credential plugin, which may need longer than a connection. They don't count for that."""


class Send(Value):
    """Send a message, as one frame."""

    message: bytes


class Write(Value):
    """Write bytes to our own stdout (1) or stderr (2)."""

    stream: int
    data: bytes


class Keep(Value):
    """Put this record, or none, where it outlives this process. Kept answers it."""

    record: Record | None


class WatchPod(Value):
    """Follow the pod, from now on or once more from now; with `anew` what is known of it is not enough."""

    anew: bool = True


class LookAtPod(Value):
    """Read the pod at once, on another connection."""


class HangUp(Value):
    """Close the connection."""


class Say(Value):
    """Show the person one line."""

    line: str


class Note(Value):
    """A line for the debug log."""

    line: str


class Finish(Value):
    """End, with this code, and this line if it is not the command's own end."""

    code: int
    line: str = ""


Action = Dial | Send | Write | Keep | WatchPod | LookAtPod | HangUp | Say | Note | Finish
