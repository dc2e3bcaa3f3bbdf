"""
The switchboards of this container and this user.

Owns: where they may be, as docs/switchboard.md has it, which folders are not to be trusted, and asking them.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from mpirt import names
from mpirt.cli.psboards import Board, Row, Usage
from mpirt.errors import PeerError, Unreachable, UsageError
from mpirt.rsh.switchboard import frames, processes
from mpirt.rsh.switchboard.frames import Kind
from mpirt.rsh.switchboard.status import CommandStatus, read_document

# A switchboard that starts takes less than a second, and a busy one no longer.
PATIENCE = 10.0
_HEADER = struct.Struct("<IB")
_WELCOME = struct.Struct("<II")
_NO_FOLDER = ("", "on", "off")


class Local:
    """All of them, with a connection to each that is kept for the next question."""

    def __init__(self, environ: Mapping[str, str], warn: Callable[[str], None]) -> None:
        """`warn` takes why a folder is not used."""
        self._places = places(environ)
        self._warn = warn
        self._warned: set[str] = set()
        self._clients: dict[str, _Client] = {}

    def ask(self) -> list[Board]:
        """How they are. Raises Unreachable and PeerError."""
        return [board for place in self._places if (board := self._ask(place)) is not None]

    def close(self) -> None:
        """Leave them."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _ask(self, place: str) -> Board | None:
        # One that has ended since may have a successor. One that ends a second connection, too, can't be asked.
        for is_last in (False, True):
            client = self._clients.pop(place, None) or self._connect(place)
            if client is None:
                return None
            try:
                board = _board(place, client.ask())
            except (EOFError, ConnectionError):
                if is_last and client.was_welcome:
                    raise PeerError(
                        f"the switchboard in {place} ends the connection instead of answering; it belongs to"
                        " a version of mpirt that has no status"
                    ) from None
            except TimeoutError:
                raise Unreachable(
                    f"the switchboard in {place} does not answer within {PATIENCE:.0f} s; it may be stopped or"
                    f" overloaded, see {place}/log"
                ) from None
            else:
                self._clients[place] = client
                return board
            finally:
                if place not in self._clients:
                    client.close()
        return None

    def _connect(self, place: str) -> _Client | None:
        try:
            return _connect(place)
        except _NotUsed as error:
            why = f"{place} {error}; it is not used"
            if why not in self._warned:
                self._warned.add(why)
                self._warn(why)
            return None


def places(environ: Mapping[str, str]) -> list[str]:
    """The folders in which a switchboard may listen."""
    given = environ.get(names.SWITCHBOARD_VARIABLE, "")
    if given.startswith("/"):
        return [given]
    if given not in _NO_FOLDER:
        what = f"{names.SWITCHBOARD_VARIABLE}={given[:80]}"
        raise UsageError(f"{what}: expected on, off or the absolute path of a folder, as the commands have it")
    namespace = str(Path("/proc/self/ns/mnt").readlink()).strip("mnt:[]")
    roots = ("/dev/shm", environ.get("TMPDIR", ""), "/tmp")  # noqa: S108  the folders in them are checked
    found = [f"{root}/mpirt-switchboard-{os.geteuid()}-{namespace}" for root in roots if root.startswith("/")]
    return list(dict.fromkeys(found))


class _NotUsed(Exception):
    """Why a folder is not to be trusted."""


class _Client:
    """A connection to one of them."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        self._socket = connection
        self._file = connection.makefile("rb")
        self.was_welcome = False

    def ask(self) -> bytes:
        """The document. Raises EOFError, OSError."""
        if not self.was_welcome:
            self._take_welcome()
        self._socket.sendall(frames.frame(Kind.STATUS_REQUEST))
        return b"".join(self._answer())

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()

    def _take_welcome(self) -> None:
        kind, payload = self._frame()
        protocol = _WELCOME.unpack(payload)[0] if len(payload) == _WELCOME.size else 0
        if (kind, protocol) != (Kind.WELCOME, frames.PROTOCOL):
            raise PeerError(f"a switchboard of another version of mpirt runs here: its protocol is {protocol}")
        self.was_welcome = True

    def _answer(self) -> Iterator[bytes]:
        while True:
            kind, payload = self._frame()
            if kind != Kind.STATUS:
                raise PeerError(f"the switchboard answers with a frame of type {kind}")
            if not payload:
                return
            yield payload

    def _frame(self) -> tuple[int, bytes]:
        length, kind = _HEADER.unpack(self._read(_HEADER.size))
        if length > frames.LARGEST_STATUS:
            raise PeerError(f"the switchboard sends a frame of {length} bytes")
        return kind, self._read(length)

    def _read(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError
        return data


def _connect(place: str) -> _Client | None:
    """None where nobody listens. Raises _NotUsed."""
    folder = _open(place)
    if folder is None:
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        # Through the descriptor: its path may lead to another folder by now, and be too long for an address.
        connection.connect(f"/proc/self/fd/{folder}/socket")
        return _client(connection)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise _NotUsed(f"can't be asked: {error.strerror}") from error
    finally:
        os.close(folder)


def _client(connection: socket.socket) -> _Client:
    if processes.peer(connection)[1] != os.geteuid():
        connection.close()
        raise _NotUsed("has a socket of another user")
    return _Client(connection)


def _open(place: str) -> int | None:
    try:
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _NotUsed(
            "is a link" if Path(place).is_symlink() else f"can't be opened: {error.strerror}"
        ) from error
    found = os.fstat(folder)
    if found.st_uid == os.geteuid() and not found.st_mode & 0o077:
        return folder
    os.close(folder)
    if found.st_uid != os.geteuid():
        raise _NotUsed("belongs to another user")
    raise _NotUsed(f"is accessible to others: its mode is {stat.S_IMODE(found.st_mode):o}")


def _board(place: str, document: bytes) -> Board:
    status, commands = read_document(document)
    return Board(place, status, _usage(status.pid), tuple(Row(one, _usage(_agent(one))) for one in commands))


def _agent(command: CommandStatus) -> int | None:
    """Its pid, as long as it lives: the number may be another program's by now."""
    if command.agent is not None:
        with suppress(OSError):
            if Path(f"/proc/{command.agent}").stat().st_uid == os.geteuid():
                return command.agent
    return None


def _usage(pid: int | None) -> Usage:
    return Usage(processes.cpu_seconds(pid), processes.memory(pid))
