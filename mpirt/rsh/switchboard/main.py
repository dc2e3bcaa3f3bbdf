"""
The switchboard's process: started by an agent, with a socket as descriptor 3.

Owns: putting the parts together; who is let in; and when the switchboard leaves: some seconds after its last
agent, in a way that no agent that comes at that moment is lost. The socket of a shared one listens, and what goes
wrong is in the file that an agent has made stderr. That of a private one is connected to its agent, with which it
ends. The program is mpirt/cli/switchboard.py, which hands in what answers mpirt-discover.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from mpirt import names
from mpirt.rsh.switchboard.board import Switchboard
from mpirt.rsh.switchboard.clusters import Discovery
from mpirt.rsh.switchboard.sockets import is_ours
from mpirt.rsh.watches.loop import FOR_EVER, Waits

_SOCKET = 3
# A launcher that starts one command after the other finds it there.
IDLE_SECONDS = 15.0
# How many to let in before the rest of the loop gets its turn.
_AT_ONCE = 64
# A link or a pipe in its place is neither followed nor waited for.
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# How long to leave the door alone where there is no descriptor for who waits.
_PAUSE = 0.1


def main(discovery: Discovery, *, idle_seconds: float = IDLE_SECONDS) -> int:
    """Serve agents until there have been none for a while; or one, if MPIRT_SWITCHBOARD is off."""
    place = os.environ.get(names.SWITCHBOARD_VARIABLE, "")
    try:
        given = socket.socket(fileno=_SOCKET)
    except OSError:
        place = ""
    if not place:
        sys.stderr.write("mpirt-switchboard: agents of mpirt-rsh start it, with a socket; people don't\n")
        return 2
    if place == "off":
        serve_one(given)
    else:
        _prepare()
        board = Switchboard(discovery)
        board.serve(Door(given, Path(place), board, idle_seconds=idle_seconds))
    return 0


def serve_one(connection: socket.socket) -> None:
    """Be the private switchboard of the agent at the other end."""
    _prepare()
    board = Switchboard()
    # A program that reads the agent's stderr to its end waits for the agent, not for this process.
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(_SOCKET):
        os.dup2(null, fd)
    board.let_in(connection)
    board.serve()


def _prepare() -> None:
    """Keep no folder busy, write what others can't read, and hold as many descriptors as this user may."""
    os.chdir("/")
    os.umask(0o077)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Door:
    """The listening socket, as a port and as the clock that says when to leave."""

    def __init__(
        self, listener: socket.socket, folder: Path, board: Switchboard, *, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        listener.settimeout(0)
        self._listener, self._board = listener, board
        self._folder, self._idle_seconds = folder, idle_seconds
        self._socket = _identity(folder / "socket")
        self._paused_until = 0.0
        self._idle_since: float | None = time.monotonic()
        self.is_closed = False

    def waits(self) -> Waits:
        if self.is_closed:
            # Who has come in and not spoken yet may take its time.
            return -1, 0, FOR_EVER
        wants = 0 if self._paused_until or self._board.is_full else select.POLLIN
        return self._listener.fileno(), wants, max(0.0, self._due - time.monotonic())

    @property
    def _due(self) -> float:
        if self._paused_until:
            return self._paused_until
        return FOR_EVER if self._idle_since is None else self._idle_since + self._idle_seconds

    def act(self) -> None:
        """Let in who waits."""
        if self._paused_until > time.monotonic():
            return
        self._paused_until = 0.0
        for _ in range(_AT_ONCE):
            if not self._accept():
                break
        self.look()
        if self._idle_since is not None and self._due <= time.monotonic():
            self._leave()

    def look(self) -> None:
        """An agent has come or gone."""
        if self._board.count:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = time.monotonic()

    def _accept(self) -> bool:
        if self._board.is_full:
            return False
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS):
                # Who waits keeps the listener ready: without a pause the loop would spin.
                self._paused_until = time.monotonic() + _PAUSE
            return False
        if _may_come_in(connection):
            self._board.let_in(connection)
        else:
            connection.close()
        return True

    def _leave(self) -> None:
        """Close the door, unless an agent is about to come in."""
        if _identity(self._folder / "socket") != self._socket:
            # Another switchboard listens there: no agent will come here.
            self._close()
            return
        try:
            with os.fdopen(os.open(self._folder / "lock", _LOCK_FLAGS, 0o600), "wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # An agent that comes now waits for the lock, and starts another one.
                (self._folder / "socket").unlink(missing_ok=True)
                self._close()
        except BlockingIOError:
            # An agent holds the lock, and so is about to come in.
            self._idle_since = time.monotonic()
        except OSError:
            # There is no such folder any more, or no right to it: no agent can come in.
            self._close()

    def _close(self) -> None:
        while self._accept():
            pass
        self.look()
        self.is_closed = True
        self._listener.close()


def _may_come_in(connection: socket.socket) -> bool:
    try:
        return is_ours(connection)
    except ConnectionRefusedError:
        return False


def _identity(path: Path) -> tuple[int, ...] | None:
    """Which file it is, if it is there: the number alone is used again."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
