r"""
What the pod's side says before there are frames, and all that the wrapper says.

Owns: the form of a marker. No I/O.

A marker is `\x01mpirt-NONCE WORD [WORDS]\n`, written by one system call, so it is never mixed with other bytes;
but it may stand in the middle of a line of the command's, and be cut anywhere by a frame's end. The nonce keeps
a command that prints another session's markers, or this text, from being mistaken for the wrapper.
"""

from __future__ import annotations

from mpirt.errors import PeerError
from mpirt.rsh.protocol.keeperframes import PROTOCOL
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The longest is START with its three words.
LONGEST = 128
_U64 = 2**64 - 1


class Hello(Value):
    """A shell is reading what we send."""

    arch: str = ""
    """The pod's processor as Kubernetes names it, where that was asked: for want of a keeper."""


class KeeperHere(Value):
    """A keeper's bridge is there; from here on there are only its frames."""

    container_start: int
    """When its container's first process started, in the kernel's clock ticks; 0 where that is not known."""


class Gone(Value):
    """A keeper's bridge says that there is no such session."""

    container_start: int


class Started(Value):
    """The command is being started; it was not before this."""

    raw_stdin: bool
    guarded: bool
    """Beats are answered, and a client that falls silent ends the command."""
    own_session: bool


class Beat(Value):
    """The answer to a beat: the worker's processes run."""


class Ack(Value):
    """One piece of stdin was taken by the command's pipe."""


class Exit(Value):
    """The command has ended, and this is its code."""

    code: int


class End(Value):
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
        raise PeerError(f"the wrapper in the pod said {text[:LONGEST]!r}, which is no marker") from error
