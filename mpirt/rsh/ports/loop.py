"""
One poll for everything that waits, of one command or of many.

Owns: the only poll of the program, and whose turn it is. A port says what it waits for; what is done when that has
come is its owner's business. Clocks come last: what has come in time is heard before anybody says that it is late.
"""

from __future__ import annotations

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Clock(Protocol):
        """Something that is due at a time."""

        def timeout(self) -> float:
            """In how many seconds it has to act, ready or not; FOR_EVER if nothing is due."""

    class Port(Clock, Protocol):
        """Something that waits for a descriptor."""

        @property
        def wants(self) -> int:
            """What to poll the descriptor for; 0 is: leave it alone."""

        def fileno(self) -> int:
            """The descriptor; -1 while there is none. It may be another one at each turn."""


FOR_EVER = float("inf")
# poll counts milliseconds in an int.
_LONGEST = 86400.0


class Loop:
    """Ports and clocks, and what each of them does when it is its turn."""

    __slots__ = ("_clocks", "_ports")

    def __init__(self) -> None:
        self._ports: dict[Port, Callable[[], None]] = {}
        self._clocks: dict[Clock, Callable[[], None]] = {}

    def add(self, port: Port, act: Callable[[], None]) -> None:
        """Have it act when its descriptor is ready, or it is time. It must bear to be called for nothing."""
        self._ports[port] = act

    def add_clock(self, clock: Clock, act: Callable[[], None]) -> None:
        """Have it act when it is time, after all ports."""
        self._clocks[clock] = act

    def remove(self, port: Port) -> None:
        """Leave it alone from now on."""
        self._ports.pop(port, None)

    def turn(self) -> None:
        """Wait until something is ready, or it is time, and let act who can."""
        ready = self._wait()
        for port, act in tuple(self._ports.items()):
            # One that acted before it may have removed it.
            if port in self._ports and (port.fileno() in ready or port.timeout() <= 0):
                act()
        for clock, act in tuple(self._clocks.items()):
            if clock.timeout() <= 0:
                act()

    def _wait(self) -> set[int]:
        poll = select.poll()
        timeout = _LONGEST
        for port in self._ports:
            wants, fd = port.wants, port.fileno()
            if wants and fd >= 0:
                poll.register(fd, wants)
            timeout = min(timeout, port.timeout())
        for clock in self._clocks:
            timeout = min(timeout, clock.timeout())
        # A millisecond more rather than less: poll cuts fractions off, and would spin through the last one.
        return {fd for fd, _ in poll.poll(int(timeout * 1000) + 1 if timeout > 0 else 0)}
