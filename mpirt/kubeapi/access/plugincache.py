"""
What a credential plugin has answered, shared by all processes of one user.

Owns: the folder, the file of an answer, and the lock under which the plugin runs. A launcher starts an agent for
each worker at once, and a plugin that logs in at a cloud provider should not run for each. Must not know: what an
answer means. Imported only when a kubeconfig names a plugin.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpirt.values import Value

# An ExecCredential with a certificate is a few KB.
ANSWER_LIMIT = 1024 * 1024
# Answers hold for hours at most.
_LEFT_OVER = 7 * 24 * 3600
# The process's own place in its shell. Everything else may decide who a plugin logs in as.
_PASSING = frozenset({"_", "SHLVL"})


class Answer(Value):
    """What the plugin has printed, and when, as time.time() has it."""

    output: bytes
    at: float


class SharedAnswers:
    """The last answer of one plugin configuration. Where there is no folder for it, nothing is shared."""

    __slots__ = ("_folder", "_name")

    def __init__(self, folder: Path | None, words: Sequence[str], environ: Mapping[str, str]) -> None:
        """`words` and `environ` are those of the plugin: its answer belongs to exactly these."""
        self._folder = folder
        variables = sorted(item for item in environ.items() if item[0] not in _PASSING)
        key = json.dumps([list(words), variables]).encode("ascii")
        self._name = f"plugin-{hashlib.sha256(key).hexdigest()}"

    def is_usable(self) -> bool:
        """Whether there is a folder of our own that nobody else can enter; it is made where it is missing."""
        if self._folder is None:
            return False
        try:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            found = self._folder.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and _is_ours(found)

    def read(self) -> Answer | None:
        """The last answer, if it was left by this user and for nobody else."""
        try:
            with open(self._path("json"), "rb", opener=_no_link) as file:
                found = os.fstat(file.fileno())
                if not (stat.S_ISREG(found.st_mode) and _is_ours(found) and found.st_size <= ANSWER_LIMIT):
                    return None
                return Answer(file.read(ANSWER_LIMIT), found.st_mtime)
        except OSError:
            return None

    def write(self, output: bytes) -> None:
        """Leave an answer for the others, whole or not at all."""
        draft = self._path(f"{os.getpid()}.new")
        try:
            with open(draft, "wb", opener=_private) as file:
                file.write(output)
            Path(draft).replace(self._path("json"))
            self._clean_up()
        except OSError:
            # They run it themselves.
            return

    def lock(self) -> Lock:
        """The lock of this plugin, not taken yet. Raises OSError."""
        return Lock(os.open(self._path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))

    def _clean_up(self) -> None:
        """Remove what other configurations have left; a lock that is in use is only made again."""
        oldest = time.time() - _LEFT_OVER
        for path in [] if self._folder is None else self._folder.glob("plugin-*"):
            if path.lstat().st_mtime < oldest:
                path.unlink(missing_ok=True)

    def _path(self, ending: str) -> str:
        return f"{self._folder}/{self._name}.{ending}"


class Lock:
    """A lock that ends with its process at the latest."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def take(self) -> bool:
        """Try to take it, without waiting. Where there are no locks everybody has it."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        """Give it back."""
        os.close(self._fd)


def folder_for(environ: Mapping[str, str]) -> Path | None:
    """
    The folder in which a user's programs share what is theirs alone, if the user has a place for it.

    In a container the home may be missing, or belong to somebody else: then it is where temporary files are.
    """
    home, runtime, cache = (environ.get(name, "") for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"))
    temporary = environ.get("TMPDIR") or "/tmp"  # noqa: S108  is_usable() takes no folder that others can enter
    places = (
        (runtime, "mpirt"),
        (cache, "mpirt"),
        (home, ".cache/mpirt"),
        (temporary, f"mpirt-{os.geteuid()}"),
    )
    for place, folder in places:
        parent = Path(place)
        if parent.is_absolute() and parent.is_dir() and os.access(parent, os.W_OK):
            return parent / folder
    return None


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
