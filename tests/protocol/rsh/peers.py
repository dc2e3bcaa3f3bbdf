"""A wrapper in the pod that a script plays. Owns: what a client of ours is told, and how it is greeted."""

from __future__ import annotations

from collections.abc import Callable

from tests.apiserver.channel import Channel
from tests.apiserver.shell import End

# As a pod's shell would say it.
START = b"START none guarded own"


def nonce(pod: Channel) -> bytes:
    """Read the greeting and the script, and say the nonce that they hold."""
    greeting = pod.stdin_line()
    pod.stdin_line()
    return greeting.partition(b";")[0].removeprefix(b"mpirt_nonce=")


class Wrapper:
    """A wrapper that a script plays: `%` in what it says on stderr is the opening of its markers."""

    def __init__(self, *lines: bytes, then: Callable[[Channel, bytes], None] | None = None) -> None:
        self._lines = lines
        self._then = then

    def __call__(self, pod: Channel) -> None:
        opening = b"\x01mpirt-" + nonce(pod) + b" "
        pod.stderr(opening + b"HELLO\n")
        assert pod.stdin_line() == b"GO"
        for line in self._lines:
            pod.stderr(line.replace(b"%", opening))
        if self._then is not None:
            self._then(pod, opening)


def ends_with(end: End) -> Callable[[Channel], None]:
    def play(pod: Channel) -> None:
        pod.stdin_line()
        end.happen(pod)

    return play
