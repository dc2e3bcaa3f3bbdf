"""
What comes over one exec connection while the wrapper runs the command, taken apart.

Owns: finding the markers of one session in the middle of what its command says, on the two channels that they come
on. No I/O.

The caller's duty: call `flush` when nothing has come for a moment. A command may write the first bytes of a
marker and then wait; they are held back until then and no longer, and even after a flush the marker is still
found.
"""

from __future__ import annotations

from mpirt.errors import PeerError
from mpirt.kubeapi.request.channels import STDERR, STDOUT, Channels, Output, Status
from mpirt.rsh.protocol.markers import LONGEST, Marker, parse_marker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

Part = Output | Marker | Status


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
        if len(data) > len(self._opening) + LONGEST:
            raise PeerError(f"the wrapper in the pod began a marker without an end: {data[:LONGEST]!r}")
        self._held, self._shown = data, shown

    def _opening_begins(self, data: bytes) -> int:
        # Only the opening's own first byte can start it, so the last one there is decides.
        at = data.rfind(b"\x01", max(len(data) - len(self._opening) + 1, 0))
        return at if at >= 0 and self._opening.startswith(data[at:]) else len(data)


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
