"""
A pod whose exec is a script: a function that talks frames, for what no real process would ever say.

    def says_hello_twice(pod: Channel) -> None:
        pod.stderr(HELLO)
        pod.stderr(HELLO)

    apiserver.on("exec", Peer(says_hello_twice))

When the function returns, the connection closes without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.apiserver.channel import Channel


@dataclass(frozen=True)
class Peer:
    """An exec that a function plays."""

    play: Callable[[Channel], None]
