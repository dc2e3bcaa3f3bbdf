"""
Reads and writes that may take long whatever poll says, done by a thread: a file on a network file system whose
server is away, a pipe that can't be opened anew and that others fill.

Owns: the thread, and which files are meant. Imported only where stdin, stdout or stderr is a file, or can't be
opened anew: nobody else pays for it.
"""

from __future__ import annotations

import os
import select
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Whose reads and writes end soon: on a disk, in memory, or in what the container is made of.
_LOCAL = frozenset({
    "aufs", "bcachefs", "btrfs", "cgroup", "cgroup2", "devtmpfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs",
    "fuseblk", "hugetlbfs", "iso9660", "jfs", "nilfs2", "ntfs3", "overlay", "proc", "ramfs", "reiserfs", "rootfs",
    "squashfs", "sysfs", "tmpfs", "vfat", "xfs", "zfs",
})  # fmt: skip
_DEVICE, _LEAST_FIELDS = 2, 3


class _Aside:
    """One call at a time, in a thread of its own. The thread ends with the process."""

    __slots__ = ("_call", "_ended", "_error", "_fd", "_go", "_tell", "is_busy")

    waits_for: int
    """What the call waits for where somebody has made the descriptor non-blocking."""

    def __init__(self, fd: int) -> None:
        self.is_busy = False
        """Whether a call was begun that has not ended, or whose end was not asked for."""
        self._fd = fd
        self._ended, self._tell = os.pipe()
        os.set_blocking(self._ended, False)
        self._go = threading.Lock()
        self._go.acquire()
        self._call: Callable[[], None]
        self._error: OSError | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def fileno(self) -> int:
        """The descriptor to poll for reading while it is busy: ready at the call's end."""
        return self._ended

    def _make(self, call: Callable[[], None]) -> None:
        """Begin the call, if none is under way. Raises BlockingIOError until one has ended, and its OSError."""
        if not self.is_busy:
            self.is_busy, self._call, self._error = True, call, None
            self._go.release()
        os.read(self._ended, 1)
        self.is_busy = False
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while self._go.acquire():
            try:
                self._see_through()
            except OSError as error:
                self._error = error
            os.write(self._tell, b"x")

    def _see_through(self) -> None:
        while True:
            try:
                return self._call()
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._fd, self.waits_for)
                poll.poll()


class Writer(_Aside):
    """Writes to a descriptor that may keep its writer waiting."""

    __slots__ = ("_count",)

    waits_for = select.POLLOUT

    def write(self, piece: bytes | bytearray) -> int:
        """
        How many bytes are written. Raises what os.write does, and BlockingIOError where it has to be asked again.

        It is asked with the same bytes at the beginning then: they may be those that are being written.
        """

        def call() -> None:
            self._count = os.write(self._fd, piece)

        self._make(call)
        return self._count


class Reader(_Aside):
    """Reads a descriptor that may keep its reader waiting."""

    __slots__ = ("_data",)

    waits_for = select.POLLIN

    def read(self, size: int) -> bytes:
        """
        What is there, none at the end. Raises as write does.

        Where it has to be asked again it is asked for no fewer bytes.
        """

        def call() -> None:
            self._data = os.read(self._fd, size)

        self._make(call)
        return self._data


def is_far(fd: int) -> bool:
    """Whether a file is on a file system that somebody else serves."""
    device = os.fstat(fd).st_dev
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            kind = file_system(file.read().decode(errors="replace"), f"{os.major(device)}:{os.minor(device)}")
    except OSError:
        return False
    return kind not in _LOCAL


def file_system(mounts: str, device: str) -> str:
    """The kind of the file system on a device, out of /proc/self/mountinfo; "rootfs" where it is not told."""
    kind = "rootfs"
    for line in mounts.splitlines():
        mount, _, rest = line.partition(" - ")
        fields = mount.split(maxsplit=_LEAST_FIELDS)
        if len(fields) > _DEVICE and fields[_DEVICE] == device and rest:
            kind = rest.split(maxsplit=1)[0]
    return kind
