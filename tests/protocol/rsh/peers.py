"""A keeper in the pod that a script plays. Owns: what a client of ours hears, and how it is greeted."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.apiserver.channel import STDIN, Channel
from tests.apiserver.shell import End
from tests.unit.rsh.keepers import ATTACHED, CONTROL, STARTED, frame, u64

_BECOMES = re.compile(rb'exec "\$mpirt_x" (bridge|attach) (\w+);')
_HEADER = 16


def greeted(pod: Channel) -> tuple[bytes, bytes]:
    """Read the greeting, and say whether it asks for a bridge or to attach, and the opening of an answer to it."""
    found = _BECOMES.search(pod.stdin_line())
    assert found is not None
    return found[1], b"\x01mpirt-" + found[2] + b" "


def out(data: bytes, *, at: int = 0) -> bytes:
    """A frame with output, on the first connection."""
    return frame(37, 1, at, data)


def ended(code: int, *, stdout: int = 0) -> bytes:
    """The frame that reports a code, after so much output."""
    return frame(39, 1, 0, bytes([0, code, 0, 0]) + u64(stdout, 0))


class Keeper:
    """A keeper that starts the command and says these frames. To another connection there is no such session."""

    def __init__(self, *said: bytes, then: Callable[[Channel], None] = Channel.close) -> None:
        self._said = b"".join(said)
        self._then = then

    def __call__(self, pod: Channel) -> None:
        verb, opening = greeted(pod)
        if verb == b"attach":
            pod.stdout(opening + b"GONE 4000\n")
            pod.close()
            return
        pod.stdout(opening + b"KEEPER 1 4000\n")
        _hear_start(pod)
        pod.stdout(frame(ATTACHED, 1, 1, b"\1" + u64(0)) + frame(STARTED, 1, 77, b"\1"))
        if self._said:
            pod.stdout(self._said)
        self._then(pod)


def _hear_start(pod: Channel) -> None:
    """Read frames up to the last part of START."""
    data = b""
    while True:
        channel, piece = pod.next_message()
        data += piece if channel == STDIN else b""
        while len(data) >= _HEADER and len(data) >= (end := _HEADER + int.from_bytes(data[1:4], "little")):
            if data[0] == CONTROL and data[_HEADER : _HEADER + 1] == b"S":
                return
            data = data[end:]


def ends_with(end: End) -> Callable[[Channel], None]:
    def play(pod: Channel) -> None:
        pod.stdin_line()
        end.happen(pod)

    return play
