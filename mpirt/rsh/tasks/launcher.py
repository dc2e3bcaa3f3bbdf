"""
Which launcher this process belongs to.

Owns: what one start of a launcher's container has that no other start has. It tells launchers apart and does not
order them, which would take a clock.
"""

from __future__ import annotations

import functools
import hashlib
import os

# Those of this process; and of the container's first one, should this one have lost some of them.
_MOUNTS = ("/proc/self/mountinfo", "/proc/1/mountinfo")


@functools.cache
def launcher_number() -> int:
    """The same for all processes of a launcher, and for no other launcher's; 0 if nothing is known."""
    known = next(filter(None, map(start_of_container, map(_read, _MOUNTS))), b"") or _first_process()
    return int.from_bytes(hashlib.sha256(known).digest()[:8], "little") if known else 0


def start_of_container(mountinfo: bytes) -> bytes:
    """
    The kubelet's own name for this start of the container, by its mounts; empty if they don't have it.

    For the termination message the kubelet makes a file each time it starts a container, .../pods/UID/containers/
    NAME/RANDOM, and mounts it there, wherever the pod wants it. The pod's shared namespaces make no difference.
    """
    found = set()
    for line in mountinfo.splitlines():
        _, is_there, path = b"".join(line.split(b" ", 4)[3:4]).rpartition(b"/pods/")
        # Once the file is deleted, its name ends with //deleted.
        match path.removesuffix(b"//deleted").split(b"/"):
            case [pod, b"containers", name, start] if is_there:
                found.add(b"/".join((pod, name, start)))
    return b" ".join(sorted(found))


def _first_process() -> bytes:
    """The start of the container's first process, and of its pod and kernel; empty if that can't be read."""
    ticks = _read("/proc/1/stat").rpartition(b") ")[2].split()[19:20]
    try:
        made = str(int(os.stat("/etc/hostname").st_mtime)).encode()
    except OSError:
        made = b""
    return b" ".join([*ticks, made, _read("/proc/sys/kernel/random/boot_id")]).strip()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
