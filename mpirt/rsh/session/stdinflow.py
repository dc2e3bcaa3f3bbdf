"""
The flow of the command's stdin, one acknowledged piece at a time.

Owns: when stdin may be read here and in which form it is sent. No I/O.
"""

from __future__ import annotations

from mpirt.rsh.protocol import wrapper


class StdinFlow:
    """Stdin on its way to the pod."""

    __slots__ = ("_ended", "_raw", "_started", "_waiting", "taken")

    def __init__(self) -> None:
        self.taken = 0
        """How many bytes were read and sent."""
        self._started = False
        self._raw = False
        self._waiting = False
        self._ended = False

    @property
    def room(self) -> int:
        """How many bytes may be read from our own stdin now. While it is 0, don't read."""
        if not self._started or self._waiting or self._ended:
            return 0
        return wrapper.RAW_PIECE if self._raw else wrapper.TEXT_PIECE

    def started(self, *, raw: bool) -> None:
        """The command runs and takes stdin."""
        self._started, self._raw = True, raw

    def piece(self, data: bytes) -> bytes:
        """What was read, as the wrapper takes it; it was no more than there was room for."""
        if len(data) > self.room:
            raise ValueError(f"there is room for {self.room} bytes of stdin, not {len(data)}")
        self._waiting = True
        self.taken += len(data)
        return wrapper.piece(data, raw=self._raw)

    def end(self) -> bytes:
        """There is no more of it."""
        self._ended = True
        return wrapper.END_OF_STDIN

    def acknowledged(self) -> bool:
        """The pod has taken a piece. False when none was under way."""
        was_waiting, self._waiting = self._waiting, False
        return was_waiting
