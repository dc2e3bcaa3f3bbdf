"""
The sockets of switchboards: where they are, which process is at the other end, and a client that only asks.

Owns: the folders in which the switchboards of this container and this user may listen, and which of these are not
to be trusted, as images/common/sockets.c has it; and the frames of an answer. The containers of a pod may share
folders, network and even processes, and mostly run as the same user. What is asked, and what the answer means, is
the caller's business. docs/switchboard.md is the contract.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import stat
import struct
import time
from typing import TYPE_CHECKING

from mpirt import names
from mpirt.errors import PeerError, UsageError
from mpirt.rsh.protocol.framing import HEADER, read_header
from mpirt.rsh.switchboard import frames
from mpirt.rsh.switchboard.frames import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

_READ = 256 * 1024
_WELCOME_SIZE = 8
_NO_FOLDER = ("", "on", "off")
# Of SO_PEERCRED: pid, uid and gid.
_CREDENTIALS = struct.Struct("@iII")
# Since Linux 6.5; Python has no name for it yet.
_SO_PEERPIDFD = 77
# The number of a mount, and what follows.
_FIRST_MOUNT_SIZE = 24
# What is said of a process that ends, or has ended, wherever it is looked for.
_OF_THE_DEAD = (errno.ENOENT, errno.ESRCH, errno.EINVAL)


class NotUsed(Exception):
    """Why a folder is not to be trusted, to follow its name."""


def places(environ: Mapping[str, str]) -> list[str]:
    """The folders in which a switchboard may listen. Raises UsageError, OSError."""
    given = environ.get(names.SWITCHBOARD_VARIABLE, "")
    if given.startswith("/"):
        return [given]
    if given not in _NO_FOLDER:
        what = f"{names.SWITCHBOARD_VARIABLE}={given[:80]}"
        raise UsageError(f"{what}: expected on, off or the absolute path of a folder, as the commands have it")
    namespace = os.readlink("/proc/self/ns/mnt").strip("mnt:[]")
    found = [f"{root}/mpirt-switchboard-{os.geteuid()}-{namespace}" for root in _roots(environ)]
    return list(dict.fromkeys(found))


def _roots(environ: Mapping[str, str]) -> list[str]:
    """As images/common/sockets.c has them: first those on the file system of "/", which no other container has."""
    wanted = ("/dev/shm", environ.get("TMPDIR", ""), "/tmp")  # noqa: S108  the folders in them are checked
    own = os.stat("/").st_dev
    return sorted((root for root in wanted if root.startswith("/")), key=lambda root: _device(root) != own)


def _device(root: str) -> int | None:
    try:
        return os.stat(root).st_dev
    except OSError:
        return None


def open_folder(place: str) -> int | None:
    """A descriptor of the folder; None where there is none. Raises NotUsed."""
    try:
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotUsed("is a link" if os.path.islink(place) else f"can't be opened: {error.strerror}") from error
    found = os.fstat(folder)
    if found.st_uid == os.geteuid() and not found.st_mode & 0o077:
        return folder
    os.close(folder)
    if found.st_uid != os.geteuid():
        raise NotUsed("belongs to another user")
    raise NotUsed(f"is accessible to others: its mode is {stat.S_IMODE(found.st_mode):o}")


def connect(place: str, *, seconds: float) -> Client | None:
    """
    Connect to the switchboard in a folder; None where no switchboard listens. Raises NotUsed.

    A switchboard whose queue is full for so many seconds is one that can't be asked.
    """
    folder = open_folder(place)
    if folder is None:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _limit_connect(connection, seconds)
        # Through the descriptor: its path may lead to another folder by now, and be too long for an address.
        connection.connect(f"/proc/self/fd/{folder}/socket")
        is_of_others = not is_ours(connection)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise NotUsed(f"can't be asked: {error.strerror}") from error
    finally:
        os.close(folder)
    if is_of_others:
        connection.close()
        raise NotUsed("has a socket of another user or container")
    return Client(connection)


def _limit_connect(connection: socket.socket, seconds: float) -> None:
    """How long connect() waits for a place in the queue: without a limit, for ever."""
    limit = struct.pack("@ll", int(seconds), int(seconds % 1 * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


class Client:
    """A connection. Ask one thing at a time; after an error, close it."""

    __slots__ = ("_socket", "_unread", "was_welcome")

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._unread = bytearray()
        self.was_welcome = False

    def ask(self, request: bytes, answer: Kind, seconds: float) -> bytes:
        """Send a frame; give the whole answer, in frames of that type. Raises EOFError, OSError, PeerError."""
        end = time.monotonic() + seconds
        if not self.was_welcome:
            self._take_welcome(end)
        self._wait_until(end)
        self._socket.sendall(request)
        pieces = []
        while piece := self._piece(answer, end):
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _take_welcome(self, end: float) -> None:
        kind, payload = self._frame(end)
        spoken = int.from_bytes(payload[:4], "little") if len(payload) == _WELCOME_SIZE else 0
        if (kind, spoken) != (Kind.WELCOME, frames.PROTOCOL):
            raise PeerError(f"a switchboard of another version of mpirt runs here: its protocol is {spoken}")
        self.was_welcome = True

    def _piece(self, answer: int, end: float) -> bytes:
        kind, payload = self._frame(end)
        if kind != answer:
            raise PeerError(f"the switchboard answers with a frame of type {kind}")
        return payload

    def _frame(self, end: float) -> tuple[int, bytes]:
        kind, length = read_header(self._read(HEADER, end))
        if length > frames.LARGEST_ANSWER:
            raise PeerError(f"the switchboard sends a frame of {length} bytes")
        return kind, self._read(length, end)

    def _read(self, count: int, end: float) -> bytes:
        unread = self._unread
        while len(unread) < count:
            self._wait_until(end)
            data = self._socket.recv(_READ)
            if not data:
                raise EOFError
            unread += data
        taken = bytes(unread[:count])
        del unread[:count]
        return taken

    def _wait_until(self, end: float) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)


def pid_of_peer(connection: socket.socket) -> int:
    """The pid at the other end; 0 where it belongs to another pid namespace."""
    pid, _ = _credentials(connection)
    return pid


def is_ours(connection: socket.socket) -> bool:
    """
    Whether it is a process of this user and this container. Where that can't be known, it is not.

    Raises ConnectionRefusedError if it has ended: one that was killed may end before its socket is closed.
    """
    pid, uid = _credentials(connection)
    if uid != os.geteuid() or not pid:
        return False
    process = None
    try:
        process = _process(connection)
        is_same = _is_in_this_container(pid)
        has_ended = process is not None and _has_ended(process)
    except OSError as error:
        if error.errno in _OF_THE_DEAD:
            raise ConnectionRefusedError from error
        return False
    else:
        if has_ended:
            raise ConnectionRefusedError
        return is_same
    finally:
        if process is not None:
            os.close(process)


def _credentials(connection: socket.socket) -> tuple[int, int]:
    pid, uid, _ = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return pid, uid


def _process(connection: socket.socket) -> int | None:
    """A descriptor of the process: its number may be another one's by now. None where the kernel has none."""
    try:
        return connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        if error.errno == errno.ENOPROTOOPT:
            return None
        raise


def _has_ended(process: int) -> bool:
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    return bool(waiting.poll(0))


def _is_in_this_container(pid: int) -> bool:
    # /proc may be another pid namespace's.
    if os.readlink("/proc/self") != str(os.getpid()):
        return False
    mount = _first_mount(pid)
    return mount != b"" and mount == _first_mount(os.getpid())


def _first_mount(pid: int) -> bytes:
    """The number is unique in the whole system, and the same for all processes of a container. Raises OSError."""
    fd = os.open(f"/proc/{pid}/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _FIRST_MOUNT_SIZE).split(b" ", 1)[0]
    finally:
        os.close(fd)
