"""
The way into a pod on one connection, from its opening to a keeper or a shell without one.

Owns: what is sent in answer to what, until it is known who is there. No I/O, no clock.
"""

from __future__ import annotations

from mpirt.errors import PeerError, Unreachable
from mpirt.kubeapi.request.channels import Channels, Output, Status
from mpirt.rsh.protocol.greeting import Answers, Keepers, greeting, upload
from mpirt.rsh.protocol.markers import Gone, Hello, KeeperHere
from mpirt.values import Value


class NotStarted(Unreachable):
    """The way to the container was open, but no shell answered."""


class NotAnswered(NotStarted):
    """It was still open when there was no time left to wait for an answer."""


class KeeperFound(Value):
    """A keeper's bridge is at the other end."""

    leftover: bytes
    """The first bytes of its frames."""
    container_start: int
    """When its container's first process started; 0 where that is not known."""


class NoKeeper(Value):
    """A shell waits for a line; there is no keeper, and none can be sent."""

    why: str


class NoSession(Value):
    """There is no session of this nonce any more."""

    container_start: int
    """When the first process of the container started in which it was looked for; 0 where that is not known."""


class Say(Value):
    """This is to be sent."""

    data: bytes


Found = KeeperFound | NoKeeper | NoSession | Say | Status


class Entrance:
    """One connection's. `channels` is what its messages are read by, afterwards too."""

    __slots__ = ("_answers", "_attach", "_keepers", "_nonce", "_uploaded", "channels")

    def __init__(self, nonce: str, keepers: Keepers, *, attach: bool = False) -> None:
        self.channels = Channels()
        self._nonce, self._keepers, self._attach = nonce, keepers, attach
        self._answers = Answers(nonce)
        self._uploaded = False

    def greeting(self) -> bytes:
        """The first words."""
        return greeting(self._nonce, self._keepers, attach=self._attach)

    def receive(self, message: bytes) -> Found | None:
        """What a message leads to. Raises PeerError."""
        part = self.channels.receive(message)
        if not isinstance(part, Output):
            return part
        marker, leftover = self._answers.receive(part)
        match marker:
            case KeeperHere(start):
                return KeeperFound(leftover, start)
            case Gone(start) if self._attach:
                return NoSession(start)
            case Hello(arch):
                return self._shell(arch)
            case Gone():
                raise PeerError("a keeper that was asked for a new session says that there is none")
        return None

    def _shell(self, arch: str) -> Found:
        if self._uploaded:
            return NoKeeper("no folder in the container takes a program and may execute it")
        if arch not in self._keepers.files:
            return NoKeeper(f"there is no keeper for the pod's processor ({arch})")
        self._uploaded = True
        return Say(upload(self._nonce, self._keepers, arch, attach=self._attach))
