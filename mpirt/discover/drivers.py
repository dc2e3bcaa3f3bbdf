"""
Whether a call is the first one of its horovodrun, and how patient it is therefore.

Owns: finding the horovodrun, by its place among the ancestors of the call, and the mark that its first call
leaves.

horovodrun calls mpirt-discover by a shell below a process of its own, so it is looked for upwards in /proc. The
mark is an empty file named by its process id and start, in a folder that only this user may enter. Where no folder
can be written, the age of horovodrun decides. Where there is no horovodrun at all, it is not known.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence

from mpirt.discover.options import Options
from mpirt.discover.patience import Patience
from mpirt.processes import Process, find
from mpirt.values import Value

# For how long a refusal by the API server may be one that passes.
_REFUSALS_PASS = 10.0
_PROGRAM = b"horovodrun"
_MODULE = b"horovod.runner"
# Interpreter, its options, and then the program. The words of a job's own program come later.
_WORDS = 4
# A shell, a supervisor, a shell: four or so.
_MOST_ANCESTORS = 64


def find_driver(parent: int, proc: str = "/proc") -> Process | None:
    """The nearest horovodrun: this process, or one of its ancestors."""
    for process in _ancestors(parent, proc):
        words = _read(f"{proc}/{process.pid}/cmdline").split(b"\0")[:_WORDS]
        if any(word.rpartition(b"/")[2] == _PROGRAM or word.startswith(_MODULE) for word in words):
            return process
    return None


def _ancestors(pid: int, proc: str) -> Iterator[Process]:
    for _ in range(_MOST_ANCESTORS):
        process = find(pid, proc)
        if process is None:
            return
        yield process
        pid = process.parent


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(64 * 1024)
    except OSError:
        return b""


def folders(environ: Mapping[str, str]) -> list[str]:
    """Where a mark may be left. With a read-only root there is /dev/shm, or an emptyDir that TMPDIR names."""
    wanted = [environ.get("XDG_RUNTIME_DIR", ""), environ.get("TMPDIR", ""), "/tmp", "/dev/shm"]  # noqa: S108  Mark checks
    return [folder for folder in wanted if folder.startswith("/")]


class Mark:
    """The mark of a driver's first call."""

    __slots__ = ("_name", "_places")

    def __init__(self, driver: Process, folders: Sequence[str]) -> None:
        """It is left in the first of the folders that can be written."""
        self._name = f"{driver.pid}-{driver.started}"
        self._places = [f"{folder}/mpirt-discover-{os.getuid()}" for folder in folders]

    def is_there(self) -> bool:
        """Whether the first call is over."""
        return any(_is_ours(place) and os.path.exists(f"{place}/{self._name}") for place in self._places)

    def can_be_made(self) -> bool:
        """Whether there is a place for it; one is made where there is none."""
        return self._place() is not None

    def make(self) -> None:
        """The first call is over."""
        place = self._place()
        if place is None:
            return
        try:
            os.close(os.open(f"{place}/{self._name}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            return

    def _place(self) -> str | None:
        for place in self._places:
            try:
                os.mkdir(place, 0o700)
            except FileExistsError:
                pass
            except OSError:
                continue
            if _is_ours(place) and os.access(place, os.W_OK):
                return place
        return None


def _is_ours(place: str) -> bool:
    """Whether it is a folder of our own that no other user can enter: every user can make one in /tmp."""
    try:
        found = os.lstat(place)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


class Call(Value):
    """How a call is to be answered."""

    patience: Patience
    mark: Mark | None = None
    """What to leave for the calls after it, if it is the first."""

    def is_over(self) -> None:
        """The calls after it are not the first."""
        if self.mark is not None:
            self.mark.make()


def call_by(parent: int, options: Options, environ: Mapping[str, str]) -> Call:
    """
    The call that the process `parent` makes.

    horovodrun ends the job when its first call fails, and only warns about later failures.
    """
    seconds, first = options.seconds, options.first_seconds
    if options.wait:
        return Call(
            Patience(
                options.wait_seconds, seconds, enough=options.wait, insists=True, retries=True,
                refusals_pass=_REFUSALS_PASS,
            )
        )  # fmt: skip
    if not first:
        return Call(Patience(seconds, seconds))
    driver = find_driver(parent)
    if driver is None:
        # It may be the first call or not. So it waits for a host, but within the deadline of a later one.
        return Call(Patience(seconds, seconds, enough=1, retries=True))
    mark = Mark(driver, folders(environ))
    if mark.is_there():
        return Call(Patience(seconds, seconds, has_hosts=True))
    if not mark.can_be_made():
        first -= driver.age
        if first <= 0:
            return Call(Patience(seconds, seconds))
    patience = Patience(max(seconds, first), seconds, enough=1, retries=True, refusals_pass=_REFUSALS_PASS)
    return Call(patience, mark=mark)
