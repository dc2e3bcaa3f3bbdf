r"""
What the wrapper says, found in the middle of what the command says.

Owns: the form of a marker, and the filter that takes markers out of a stream. No I/O.

A marker is `\x01mpirt-NONCE WORD [WORDS]\n`, written by one system call, so it is never mixed with other bytes;
but it may stand in the middle of a line of the command's, and be cut anywhere by a frame's end. The nonce keeps
a command that prints another session's markers, or this text, from being mistaken for the wrapper.

The caller's duty: call `flush` when nothing has come for a moment. A command may write the first bytes of a
marker and then wait; they are held back until then and no longer, and even after a flush the marker is still
found.
"""

from __future__ import annotations

from mpirt.errors import PeerError
from mpirt.rsh.protocol.keeperframes import PROTOCOL
from mpirt.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The longest is START with its three words.
_LONGEST = 128
_U64 = 2**64 - 1


@value
class Hello:
    """A shell is reading what we send."""

    arch: str = ""
    """The pod's processor as Kubernetes names it, where that was asked: for want of a keeper."""


@value
class KeeperHere:
    """A keeper's bridge is there; from here on there are only its frames."""

    container_start: int
    """When its container's first process started, in the kernel's clock ticks; 0 where that is not known."""


@value
class Gone:
    """A keeper's bridge says that there is no such session."""

    container_start: int


@value
class Started:
    """The command is being started; it was not before this."""

    raw_stdin: bool
    guarded: bool
    """Beats are answered, and a client that falls silent ends the command."""
    own_session: bool


@value
class Beat:
    """The answer to a beat: the worker's processes run."""


@value
class Ack:
    """One piece of stdin was taken by the command's pipe."""


@value
class Exit:
    """The command has ended, and this is its code."""

    code: int


@value
class End:
    """All that the command itself wrote to this stream has come."""

    left_open: bool = False
    """Something that it left behind still has its output open."""


Marker = Hello | KeeperHere | Gone | Started | Beat | Ack | Exit | End


def _started(words: list[str]) -> Started:
    stdin, guarded, session = words
    return Started(
        raw_stdin={"none": False, "text": False, "raw": True}[stdin],
        guarded={"guarded": True, "unguarded": False}[guarded],
        own_session={"own": True, "shared": False}[session],
    )


def _exit(words: list[str]) -> Exit:
    return Exit(_number(words, 255))


def _end(words: list[str]) -> End:
    return End(left_open={(): False, ("open",): True}[tuple(words)])


def _hello(words: list[str]) -> Hello:
    return Hello({"": "", "none": "none", "amd64": "amd64", "arm64": "arm64"}[" ".join(words)])


def _keeper(words: list[str]) -> KeeperHere:
    if words[:1] != [str(PROTOCOL)]:
        raise ValueError(words)
    return KeeperHere(_number(words[1:], _U64))


def _gone(words: list[str]) -> Gone:
    return Gone(_number(words, _U64))


def _number(words: list[str], most: int) -> int:
    (word,) = words
    if not (word.isascii() and word.isdigit() and int(word) <= most):
        raise ValueError(word)
    return int(word)


def _alone(marker: Marker) -> Callable[[list[str]], Marker]:
    def parse(words: list[str]) -> Marker:
        if words:
            raise ValueError(words)
        return marker

    return parse


_PARSERS: dict[str, Callable[[list[str]], Marker]] = {
    "HELLO": _hello,
    "KEEPER": _keeper,
    "GONE": _gone,
    "START": _started,
    "BEAT": _alone(Beat()),
    "ACK": _alone(Ack()),
    "EXIT": _exit,
    "END": _end,
}


def parse_marker(text: bytes) -> Marker:
    """A marker out of what stands between its nonce and its newline."""
    try:
        word, *words = text.decode("ascii").split(" ")
        return _PARSERS[word](words)
    except (KeyError, ValueError) as error:
        raise PeerError(f"the wrapper in the pod said {text[:_LONGEST]!r}, which is no marker") from error


def _some(data: bytes) -> tuple[bytes, ...]:
    return (data,) if data else ()


class MarkerFilter:
    """Takes the markers of one session out of one stream."""

    __slots__ = ("_held", "_opening", "_shown")

    def __init__(self, nonce: str) -> None:
        self._opening = b"\x01mpirt-" + nonce.encode() + b" "
        self._held = b""
        self._shown = 0

    def feed(self, data: bytes) -> Iterator[bytes | Marker]:
        """The command's bytes and the markers among them, in their order. Raises PeerError where it is broken."""
        data, start = self._held + data, self._shown
        after = 0
        while (at := data.find(self._opening, after)) >= 0:
            yield from _some(data[start:at])
            if (end := data.find(b"\n", at)) < 0:
                break
            yield parse_marker(data[at + len(self._opening) : end])
            start = after = end + 1
        else:
            at = max(self._opening_begins(data), after)
            yield from _some(data[start:at])
        self._hold(data[at:], max(start - at, 0))

    def flush(self) -> bytes:
        """What was held back because it may become a marker; should it still become one, the rest is taken out."""
        if not self.holds_back:
            return b""
        shown, self._shown = self._shown, len(self._held)
        return self._held[shown:]

    @property
    def holds_back(self) -> bool:
        """Whether there is anything to flush."""
        return len(self._held) > self._shown and not self._held.startswith(self._opening)

    def _hold(self, data: bytes, shown: int) -> None:
        if len(data) > len(self._opening) + _LONGEST:
            raise PeerError(f"the wrapper in the pod began a marker without an end: {data[:_LONGEST]!r}")
        self._held, self._shown = data, shown

    def _opening_begins(self, data: bytes) -> int:
        # Only the opening's own first byte can start it, so the last one there is decides.
        at = data.rfind(b"\x01", max(len(data) - len(self._opening) + 1, 0))
        return at if at >= 0 and self._opening.startswith(data[at:]) else len(data)
