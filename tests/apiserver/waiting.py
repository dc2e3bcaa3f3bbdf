"""Waiting for descriptors, however many this process has open: select() takes none above 1023."""

from __future__ import annotations

import select
from collections.abc import Iterable


def ready(
    reads: Iterable[int], writes: Iterable[int] = (), *, within: float | None = None
) -> tuple[set[int], set[int]]:
    """Those that can be read and those that can be written, at once or within so many seconds; None: for ever."""
    poll = select.poll()
    wanted = {**dict.fromkeys(reads, select.POLLIN)}
    for descriptor in writes:
        wanted[descriptor] = wanted.get(descriptor, 0) | select.POLLOUT
    for descriptor, events in wanted.items():
        poll.register(descriptor, events)
    found = poll.poll(None if within is None else within * 1000)
    others = select.POLLHUP | select.POLLERR
    return (
        {each for each, events in found if wanted[each] & select.POLLIN and events & (select.POLLIN | others)},
        {each for each, events in found if wanted[each] & select.POLLOUT and events & (select.POLLOUT | others)},
    )
