"""
One loop for everything that waits, of one command or of thousands.

Owns: the only wait of the program, and whose turn it is. A port says what it waits for; what is done when that has
come is its owner's business. Clocks come last: what has come in time is heard before anybody says that it is late.

A turn costs what is ready or due, not what is registered. So ports and clocks are in groups, one per command: what
they wait for changes only when one of the group's acts has run, or when touch() is called. Only then is the
group asked again.
"""

from __future__ import annotations

import heapq
import select
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Protocol, TypeAlias


class Clock(Protocol):
    """Something that is due at a time."""

    def timeout(self) -> float:
        """In how many seconds it has to act, ready or not; FOR_EVER if nothing is due."""


class Port(Protocol):
    """Something that waits for a descriptor. Each act may change for which, and for how long."""

    def waits(self) -> Waits: ...


Waits: TypeAlias = tuple[int, int, float]
"""Which descriptor, -1 for none; for what, 0 to leave it alone; and in how many seconds to act, ready or not."""

FOR_EVER = float("inf")
# epoll counts milliseconds in an int.
_LONGEST = 86400.0
# A heap of this size is not worth cleaning up.
_SMALL = 64


class _Entry:
    """A port, and where it is registered."""

    __slots__ = ("act", "fd", "group", "port", "wants")

    def __init__(self, port: Port, act: Callable[[], None], group: _Group) -> None:
        self.port, self.act, self.group = port, act, group
        self.fd, self.wants = -1, 0


class _Group:
    """Ports and clocks that are asked together."""

    __slots__ = ("clocks", "clocks_due", "due", "entries", "key", "number")

    def __init__(self, key: Hashable, number: int) -> None:
        self.key, self.number = key, number
        self.entries: dict[Port, _Entry] = {}
        self.clocks: dict[Clock, Callable[[], None]] = {}
        self.due = self.clocks_due = FOR_EVER


class Loop:
    """Ports and clocks, and what each of them does when it is its turn."""

    __slots__ = ("_changed", "_count", "_entries", "_failed", "_grain", "_groups", "_heap", "_watch")

    def __init__(self, failed: Callable[[Hashable, Exception], None] | None = None, *, grain: float = 0.0) -> None:
        """
        `failed` is called with the group and the exception of an act that raises; without it, turn() raises.

        With a `grain` what is due later than in so many seconds is done together, and up to that much later.
        """
        self._failed = failed
        self._grain = grain
        self._watch = _Watch()
        self._groups: dict[Hashable, _Group] = {}
        self._entries: dict[Port, _Entry] = {}
        self._changed: dict[_Group, None] = {}
        # When groups are due. An entry whose time is not its group's any more is stale, and skipped.
        self._heap: list[tuple[float, int, _Group]] = []
        self._count = 0

    def add(self, port: Port, act: Callable[[], None], *, group: Hashable = None) -> None:
        """Have it act when its descriptor is ready, or it is time. It must bear to be called for nothing."""
        self.remove(port)
        home = self._group(group)
        self._entries[port] = home.entries[port] = _Entry(port, act, home)

    def add_clock(self, clock: Clock, act: Callable[[], None], *, group: Hashable = None) -> None:
        """Have it act when it is time, after all ports."""
        self._group(group).clocks[clock] = act

    def remove(self, port: Port) -> None:
        """Leave it alone from now on. Best called before its descriptor is closed."""
        entry = self._entries.pop(port, None)
        if entry is None:
            return
        self._watch.leave(entry)
        group = entry.group
        del group.entries[port]
        self._changed[group] = None
        if not group.entries and not group.clocks:
            self.drop(group.key)

    def drop(self, group: Hashable) -> None:
        """Leave all ports and clocks of a group alone from now on."""
        gone = self._groups.pop(group, None)
        if gone is None:
            return
        self._changed.pop(gone, None)
        gone.due = FOR_EVER
        gone.clocks.clear()
        for port, entry in gone.entries.items():
            del self._entries[port]
            self._watch.leave(entry)
        gone.entries.clear()

    def touch(self, group: Hashable) -> None:
        """Ask a group again before the next wait: something else than its own acts has changed it."""
        touched = self._groups.get(group)
        if touched is not None:
            self._changed[touched] = None

    def turn(self) -> None:
        """Wait until something is ready, or it is time, and let act who can."""
        while self._changed:
            group = next(iter(self._changed))
            self._try(group, self._ask)
            self._changed.pop(group, None)
        ready = self._watch.wait(self._timeout())
        now = time.monotonic()
        due = self._take_due(now)
        awake = dict.fromkeys([*(entry.group for entry in ready), *due])
        # Now, so that an act that raises leaves nothing behind that is never asked again.
        self._changed.update(awake)
        for group in awake:
            self._try(group, lambda acting: _let_ports_act(acting, ready, is_due=acting in due))
        for group in due:
            # Acts take time. A clock that has become due meanwhile waits until its ports have been heard again.
            if group.clocks_due <= now:
                self._try(group, _let_clocks_act)

    def _try(self, group: _Group, what: Callable[[_Group], None]) -> None:
        if self._failed is None:
            what(group)
            return
        try:
            what(group)
        except Exception as error:  # noqa: BLE001  the owner knows what else must go on
            self._failed(group.key, error)

    def _group(self, key: Hashable) -> _Group:
        group = self._groups.get(key)
        if group is None:
            self._count += 1
            group = self._groups[key] = _Group(key, self._count)
        self._changed[group] = None
        return group

    def _ask(self, group: _Group) -> None:
        """What its ports and clocks wait for now."""
        ports = FOR_EVER
        for entry in group.entries.values():
            fd, wants, seconds = entry.port.waits()
            self._watch.put(entry, fd if wants else -1, wants)
            ports = min(ports, seconds)
        clocks = min((clock.timeout() for clock in group.clocks), default=FOR_EVER)
        now = time.monotonic()
        group.clocks_due = now + clocks
        due = now + min(ports, clocks)
        if self._grain and self._grain < due - now < FOR_EVER:
            due = -(-due // self._grain) * self._grain
        if due != group.due:
            group.due = due
            if due < FOR_EVER:
                self._push(due, group)

    def _push(self, due: float, group: _Group) -> None:
        if len(self._heap) > _SMALL + 2 * len(self._groups):
            # Mostly stale: times are moved far more often than they come.
            self._heap = [(each.due, each.number, each) for each in self._groups.values() if each.due < FOR_EVER]
            heapq.heapify(self._heap)
        else:
            heapq.heappush(self._heap, (due, group.number, group))

    def _timeout(self) -> float:
        """How long to wait at most."""
        while self._heap and self._heap[0][0] != self._heap[0][2].due:
            heapq.heappop(self._heap)
        return self._heap[0][0] - time.monotonic() if self._heap else _LONGEST

    def _take_due(self, now: float) -> dict[_Group, None]:
        due: dict[_Group, None] = {}
        while self._heap and self._heap[0][0] <= now:
            at, _, group = heapq.heappop(self._heap)
            if at == group.due:
                due[group] = None
                # Not in the heap any more: the next time is pushed even if it is the same.
                group.due = FOR_EVER
        return due


def _let_ports_act(group: _Group, ready: dict[_Entry, None], *, is_due: bool) -> None:
    for port, entry in tuple(group.entries.items()):
        is_ready = entry in ready
        # One that acted before it may have removed it.
        if (is_ready or is_due) and group.entries.get(port) is entry:
            fd, _, seconds = port.waits()
            # Or closed it.
            if (is_ready and fd == entry.fd) or (is_due and seconds <= 0):
                entry.act()


def _let_clocks_act(group: _Group) -> None:
    for clock, act in tuple(group.clocks.items()):
        if clock in group.clocks and clock.timeout() <= 0:
            act()


class _Watch:
    """
    Which descriptors are watched, and for whom: epoll with the meaning of poll.

    epoll knows open files where we know numbers. It silently forgets a file that is closed. So each put() asserts
    the registration again, although nothing seems to have changed: the number may belong to another file. And it
    remembers a file that was closed here but is still open elsewhere (in a child, under another number). It then
    reports that file under the old number, which may be another port's by now, and only a new epoll ends that.
    """

    __slots__ = ("_at", "_epoll", "_registered", "_suspect")

    def __init__(self) -> None:
        self._at: dict[int, dict[_Entry, None]] = {}
        """Who waits at each number. Two may share one, but epoll has only one registration for it."""
        self._epoll = select.epoll()
        self._registered: set[int] = set()
        self._suspect: set[int] = set()
        """Numbers that were closed while they were registered: epoll may report what has been there before."""

    def put(self, entry: _Entry, fd: int, wants: int) -> None:
        """Have it wait at this number, and at no other; -1 is none."""
        if entry.fd != fd:
            self.leave(entry)
        if fd >= 0:
            entry.fd, entry.wants = fd, wants
            self._at.setdefault(fd, {})[entry] = None
            self._register(fd)

    def leave(self, entry: _Entry) -> None:
        """Have it wait nowhere."""
        fd, entry.fd = entry.fd, -1
        if fd < 0:
            return
        del self._at[fd][entry]
        if self._at[fd]:
            self._register_again(fd)
        else:
            del self._at[fd]
            self._unregister(fd)

    def wait(self, timeout: float) -> dict[_Entry, None]:
        """Who is ready, in so many seconds at most."""
        # epoll takes a negative time for no limit. There is room for all that may be ready: a clock must not
        # overtake what did not fit. epoll.poll rounds up to whole milliseconds; rounded down, the loop would spin
        # through the last one.
        reported = self._epoll.poll(max(0.0, min(timeout, _LONGEST)), len(self._at) + 1)
        ready = self._without_stale([fd for fd, _ in reported])
        return {entry: None for fd in ready for entry in self._at[fd]}

    def _wants(self, fd: int) -> int:
        wants = 0
        for entry in self._at[fd]:
            wants |= entry.wants
        return wants

    def _register_again(self, fd: int) -> None:
        # If it is closed by now, its ports are asked for another one.
        with suppress(OSError):
            self._register(fd)

    def _register(self, fd: int) -> None:
        wants = self._wants(fd)
        try:
            if fd in self._registered:
                self._epoll.modify(fd, wants)
            else:
                self._epoll.register(fd, wants)
        except FileNotFoundError:
            # Another file than before.
            self._suspect.add(fd)
            self._epoll.register(fd, wants)
        except FileExistsError:
            # A file that was taken for closed.
            self._epoll.modify(fd, wants)
        self._registered.add(fd)

    def _unregister(self, fd: int) -> None:
        if fd not in self._registered:
            return
        self._registered.discard(fd)
        try:
            self._epoll.unregister(fd)
        except OSError:
            # Closed already. Mostly epoll has forgotten it.
            self._suspect.add(fd)

    def _without_stale(self, reported: list[int]) -> list[int]:
        """Those that are ready indeed."""
        doubtful = {fd for fd in reported if fd in self._suspect or fd not in self._at}
        if not doubtful:
            return reported
        poll = select.poll()
        for fd in doubtful & self._at.keys():
            poll.register(fd, self._wants(fd))
        stale = doubtful.difference(fd for fd, _ in poll.poll(0))
        if stale:
            self._start_over()
        return [fd for fd in reported if fd not in stale]

    def _start_over(self) -> None:
        self._epoll.close()
        self._epoll = select.epoll()
        self._registered.clear()
        self._suspect.clear()
        for fd in self._at:
            self._register_again(fd)
