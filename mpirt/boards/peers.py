"""
Who is at the other end of a unix socket: as images/common/sockets.c has it.

Owns: whether that is a process of this user and this container. The containers of a pod may share folders, network
and even processes, and mostly run as the same user.
"""

from __future__ import annotations

import _socket
import errno
import os
import select
import sys

# Of SO_PEERCRED: pid, uid and gid.
_CREDENTIALS_SIZE, _PID, _UID = 12, slice(0, 4), slice(4, 8)
# Since Linux 6.5; Python has no name for it yet.
_SO_PEERPIDFD = 77
# The number of a mount, and what follows.
_FIRST_MOUNT_SIZE = 24
# What is said of a process that ends, or has ended, wherever it is looked for.
_OF_THE_DEAD = (errno.ENOENT, errno.ESRCH, errno.EINVAL)


def pid_of_peer(connection: _socket.socket) -> int:
    """The pid at the other end; 0 where it belongs to another pid namespace."""
    return _credentials(connection)[0]


def is_ours(connection: _socket.socket) -> bool:
    """
    Whether it is a process of this user and this container. Where that can't be told, it is not.

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


def _credentials(connection: _socket.socket) -> tuple[int, int]:
    found = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS_SIZE)
    return int.from_bytes(found[_PID], sys.byteorder), int.from_bytes(found[_UID], sys.byteorder)


def _process(connection: _socket.socket) -> int | None:
    """A descriptor of the process: its number may be another one's by now. None where the kernel has none."""
    try:
        return connection.getsockopt(_socket.SOL_SOCKET, _SO_PEERPIDFD)
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
