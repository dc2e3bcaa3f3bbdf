"""
What a session is carried out with: its streams, its place, the watch on its pod, and whose turn it is to dial.

Owns: the interfaces and values only. AgentLink, PodHub and Turn are those of a switchboard.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mpirt.errors import MpirtError
from mpirt.kubeapi.request.execs import ExecApi
from mpirt.rsh.session import events
from mpirt.rsh.session.task import Record
from mpirt.rsh.watches.loop import Loop

if TYPE_CHECKING:
    # It imports this module.
    from mpirt.rsh.switchboard.sessionio import SessionIO


class Client(ABC):
    """Where the command's stdin, stdout and stderr are."""

    __slots__ = ()

    @abstractmethod
    def serve(self, running: SessionIO, /) -> None:
        """Carry the streams of this session from now on."""

    @abstractmethod
    def write(self, stream: int, data: bytes, /) -> None: ...
    @abstractmethod
    def say(self, line: str, /) -> None: ...
    @property
    @abstractmethod
    def waiting(self) -> int:
        """How many bytes of one stream have not been written yet, at most."""

    @property
    @abstractmethod
    def is_crowded(self) -> bool:
        """Whether other commands want the room that the output takes."""

    @property
    @abstractmethod
    def done(self) -> tuple[int, int]:
        """How much of the command's stdout and stderr has been written, or dropped for want of a reader."""

    @abstractmethod
    def broken_by(self, stream: int, /) -> int:
        """The errno for which a stream can't be written any more; 0 while it can."""

    @abstractmethod
    def keep(self, record: Record | None, /) -> None:
        """Store it, and confirm that by the event Kept."""

    @abstractmethod
    def settle(self, stdin_room: int, stdin_taken: int, /) -> None:
        """Send what is queued; so much of stdin may be read, so much is not needed any more."""

    @abstractmethod
    def read_no_more(self) -> None:
        """Nothing wants stdin any more."""


class Follower(Protocol):
    """What watches one pod."""

    def look(self, *, anew: bool) -> None: ...
    def drop(self) -> None: ...


Hear = Callable[[Sequence[events.Event]], None]
Follow = Callable[[str, Hear], Follower]


class Gate(Protocol):
    """What says when to dial, so that not all do at once."""

    def enter(self, who: object, dial: Callable[[], None], /) -> None: ...
    def refused(self, error: MpirtError, /) -> None: ...
    def leave(self, who: object, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where the command is to run."""

    namespace: str
    pod: str
    service: str = ""
    """The second label of a host name: no pod may have its first as a name."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a session is carried out with."""

    loop: Loop
    api: ExecApi
    follow: Follow
    gate: Gate | None = None
