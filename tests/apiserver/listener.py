"""
A loopback port: one thread that accepts, and those that serve who came.

Owns: the threads and the listening socket; close() and join() leave none of them behind. Who serves connections
ends them between the two, so that their threads end.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from tests.apiserver.certificates import HOST

# Far more than any step of a test takes; only a test that fails ever waits so long.
PATIENCE = 30.0


class Listener:
    """One port."""

    def __init__(self, name: str) -> None:
        """`name` is whose threads these are, for when one does not end."""
        self.stopping = threading.Event()
        self._name = name
        self._socket = socket.create_server((HOST, 0), backlog=128)
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def start(self, welcome: Callable[[socket.socket], None]) -> None:
        """Accept from now on; `welcome` is called for each connection, one after the other."""
        self.begin(self._accept, welcome)

    def begin(self, target: Callable[..., None], *args: object) -> None:
        """Let a thread do this."""
        name = f"{self._name} {target.__name__}"
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Accept no more."""
        self.stopping.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def join(self) -> None:
        """Wait until all threads have ended."""
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), f"{thread.name} does not end"

    def _accept(self, welcome: Callable[[socket.socket], None]) -> None:
        while not self.stopping.is_set():
            try:
                accepted, _ = self._socket.accept()
            except OSError:
                return
            welcome(accepted)
