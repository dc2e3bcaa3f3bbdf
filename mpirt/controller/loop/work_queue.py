"""
The work queue for several threads.

Owns: the lock, and waiting for the next key. The order of keys is queue.py's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Generic

from mpirt.controller.loop.queue import Key, Queue

Settle = Callable[[Queue[Key]], None]


class WaitingQueue(Generic[Key]):
    """A queue with a lock and a condition variable. Every method may be called from any thread."""

    def __init__(self, queue: Queue[Key], clock: Callable[[], float]) -> None:
        self._queue = queue
        self._clock = clock
        self._bell = threading.Condition()
        self._closed = False

    def add(self, keys: Iterable[Key]) -> None:
        """Queue these keys, and wake waiting workers."""
        with self._bell:
            for key in keys:
                self._queue.add(key)
            self._bell.notify_all()

    def take(self) -> Key | None:
        """Wait for the next key and return it; None when the queue is closed."""
        with self._bell:
            while not self._closed:
                key = self._queue.take(self._clock())
                if key is not None:
                    return key
                date = self._queue.next_date()
                self._bell.wait(None if date is None else max(0.0, date - self._clock()))
            return None

    def settle(self, how: Settle[Key]) -> None:
        """Give a key back: `how` calls done(), changed() or failed() of the queue."""
        with self._bell:
            how(self._queue)
            self._bell.notify_all()

    def close(self) -> None:
        """Close the queue: take() returns None in every thread."""
        with self._bell:
            self._closed = True
            self._bell.notify_all()

    def depth(self) -> int:
        """Return how many keys are ready."""
        with self._bell:
            return self._queue.depth()
