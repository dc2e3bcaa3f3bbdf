"""
Where the switchboards of this container and this user may be, as docs/switchboard.md has it.

Owns: the folders, and which of them are not to be trusted.
"""

from __future__ import annotations

import os
import stat

from mpirt import names
from mpirt.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_FOLDER = ("", "on", "off")


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
