"""
What happens to a session, and what it wants done about it.

Owns: the words between the state machine and whoever does its I/O. Values only.
"""

from __future__ import annotations

from mpirt.errors import MpirtError
from mpirt.rsh.pod.facts import Pod
from mpirt.values import value


@value
class Opened:
    """The exec's WebSocket is open, with this sub-protocol."""

    protocol: str


@value
class NotOpened:
    """It could not be opened."""

    error: MpirtError


@value
class Received:
    """A whole WebSocket message has come."""

    message: bytes


@value
class Pong:
    """A ping was answered."""


@value
class Closed:
    """The connection has ended; how, in a few words."""

    how: str


@value
class StdinRead:
    """Bytes were read from our own stdin; none means its end."""

    data: bytes


@value
class StdinBroken:
    """Our own stdin can't be read any more, which is not its end; why."""

    why: str


@value
class Signalled:
    """A signal came: its name without SIG, and its number."""

    name: str
    number: int


@value
class StdoutBroken:
    """Nobody reads our stdout any more."""


@value
class Written:
    """So much of the command's output has been written, or dropped for want of a reader, in all."""

    stdout: int
    stderr: int


@value
class Listening:
    """Whether we still read the connection: not while output waits for a slow reader."""

    listening: bool


@value
class PodFound:
    """The name that was given is a host's; this is the name of the pod that has it."""

    pod: str


@value
class PodSeen:
    """The pod as it is now."""

    pod: Pod


@value
class PodGone:
    """There is no pod of this name."""


@value
class ApiAnswers:
    """The API server can be heard."""


@value
class PodHidden:
    """The API server answers, but may not tell about the pod; why."""

    why: str


@value
class ApiSilent:
    """The API server can't be heard; why."""

    why: str


@value
class Tick:
    """Time has passed."""


Event = (
    Opened
    | NotOpened
    | Received
    | Pong
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
    | Tick
)


@value
class Dial:
    """Open the exec's WebSocket, with this sub-protocol, in this container (empty: the only one)."""

    protocol: str
    container: str
    seconds: float
    credentials_seconds: float
    """For a credential plugin, which may need longer than a connection. They don't count for that."""


@value
class Send:
    """Send a message, as one frame."""

    message: bytes


@value
class Ping:
    """Send a ping."""


@value
class Write:
    """Write bytes to our own stdout (1) or stderr (2)."""

    stream: int
    data: bytes


@value
class WatchPod:
    """Keep an eye on the pod from now on."""


@value
class LookAtPod:
    """Read the pod at once: anew on another connection, or where the one that there is does not tell by itself."""

    anew: bool


@value
class HangUp:
    """Close the connection."""


@value
class Say:
    """Tell the person one line."""

    line: str


@value
class Note:
    """Tell one line to who wants to know everything."""

    line: str


@value
class Finish:
    """End, with this code, and this line if it is not the command's own end."""

    code: int
    line: str = ""


Action = Dial | Send | Ping | Write | WatchPod | LookAtPod | HangUp | Say | Note | Finish
