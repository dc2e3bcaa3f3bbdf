"""
What comes over one exec connection, taken apart.

Owns: the markers of one session in its two output streams, put together with the channels they come on. No I/O.
"""

from __future__ import annotations

from mpirt.rsh.protocol.channels import STDERR, STDOUT, Channels, Output, Status
from mpirt.rsh.protocol.markers import Marker, MarkerFilter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

Part = Output | Marker | Status


class Streams:
    """One connection's output, markers and status."""

    __slots__ = ("_channels", "_filters")

    def __init__(self, nonce: str) -> None:
        self._channels = Channels()
        self._filters = {STDOUT: MarkerFilter(nonce), STDERR: MarkerFilter(nonce)}

    def receive(self, message: bytes) -> Iterator[Part]:
        """What a message holds, in order. Raises PeerError, after what stands before the offence."""
        event = self._channels.receive(message)
        if isinstance(event, Output):
            for part in self._filters[event.stream].feed(event.data):
                yield Output(event.stream, part) if isinstance(part, bytes) else part
        elif event is not None:
            yield event

    def flush(self) -> list[Output]:
        """Output that was held back for it looks like the beginning of a marker, when nothing has followed."""
        held = [Output(stream, filter_.flush()) for stream, filter_ in self._filters.items()]
        return [output for output in held if output.data]

    @property
    def holds_back(self) -> bool:
        """Whether there is anything to flush."""
        return any(filter_.holds_back for filter_ in self._filters.values())

    def cut_off(self) -> None:
        """The connection has ended. Raises PeerError where it did so in the middle of a status."""
        self._channels.cut_off()
