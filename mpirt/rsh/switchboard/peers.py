"""
Which process is at the other end of a unix socket, as images/common/sockets.c has it.

Owns: whether that is a process of this user and this container. The containers of a pod may share folders, network
and even processes, and mostly run as the same user.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct

# Of SO_PEERCRED: pid, uid and gid.
_CREDENTIALS = struct.Struct("@iII")
# Since Linux 6.5; Python has no name for it yet.
_SO_PEERPIDFD = 77
# The number of a mount, and what follows.
_FIRST_MOUNT_SIZE = 24
# What is said of a process that ends, or has ended, wherever it is looked for.
_OF_THE_DEAD = (errno.ENOENT, errno.ESRCH, errno.EINVAL)


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
