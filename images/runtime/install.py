"""
mpirt-runtime-install: copies the runtime folder that it is part of into another one.

Owns: what is in that other folder when it has ended, and when it was killed.

    DIR/.runtime-XXXXXXXX/   the copy: bin/ and lib/
    DIR/bin                  a link to its bin/, made last

The link is replaced in one step, so that DIR/bin is there whole or not at all. A copy that no link leads to is
what a killed run left, or a former version: it is removed unless its maker still holds it, or it belongs to
another user. A copy that is already there is read through: a machine that lost its power may have kept a file's
name without its content.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mpirt.errors import ExitCode

_PROGRAM = "mpirt-runtime-install"
_PARTS = ("bin", "lib")
_COPY = ".runtime-"

_HELP = f"""\
Usage: {_PROGRAM} DIR [-- PROGRAM [ARG]...]

Copies mpirt and all that it needs into DIR, which may be an empty volume: DIR/bin then has mpirt-rsh,
mpirt-discover, mpirt, ssh and kubexec.sh, which run in any container that has DIR mounted, wherever, and whatever
its image. A second run repairs or replaces what the first one left.

PROGRAM is run after that, in its place: a second init container would delay the pod by a second.

Examples, as an init container of the image mpirt-runtime, with the volume mounted at /opt/mpirt:
  args: [/opt/mpirt]
  args: [/opt/mpirt, --, /opt/mpirt/bin/mpirt-discover, --statefulset, worker, --wait, "4"]
"""


class NotInstalled(Exception):
    """Why not, in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Install, and say what was done in one line. Returns the code to exit with."""
    match list(sys.argv[1:] if argv is None else argv):
        case ["-h" | "--help"]:
            sys.stdout.write(_HELP)
            return ExitCode.OK
        case [target] if target and not target.startswith("-"):
            return _install(Path(sys.prefix), Path(target), quiet=False)
        case [target, "--", program, *words] if target and not target.startswith("-"):
            return _install(Path(sys.prefix), Path(target), quiet=True) or _become(program, words)
        case _:
            return _fail(f"needs one folder, and -- before a program; see: {_PROGRAM} --help", ExitCode.USAGE)


def _become(program: str, words: Sequence[str]) -> int:
    """Run the program in place of this one; returns only if that can't be done."""
    try:
        os.execv(program, [program, *words])  # noqa: S606  the pod's own
    except OSError as error:
        return _fail(f"can't run {program}: {error.strerror}", ExitCode.CONFIG)


def _install(source: Path, target: Path, *, quiet: bool) -> int:
    """With `quiet`, success is not reported: the last lines of the log are the program's that follows."""
    began = time.monotonic()
    try:
        was_made = install(source, target)
    except NotInstalled as error:
        return _fail(str(error), ExitCode.CONFIG)
    except OSError as error:
        return _fail(f"can't install into {target}: {reason(error, source)}", ExitCode.CONFIG)
    if quiet:
        return ExitCode.OK
    did = "installed" if was_made else "was there already, unchanged"
    size, seconds = _size(source) / 1e6, time.monotonic() - began
    sys.stdout.write(f"{_PROGRAM}: {did}: {target}/bin, {size:.1f} MB, {seconds:.2f} s\n")
    return ExitCode.OK


def reason(error: OSError, source: Path) -> str:
    """What went wrong, and what is needed for it to go well."""
    what = error.strerror or type(error).__name__
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"{what}; {_size(source) / 1e6:.0f} MB are needed"
    return f"{what}; give it a folder that user {os.getuid()} can write to"


def install(source: Path, target: Path) -> bool:
    """Whether anything had to be done to have `source` in `target`. Raises NotInstalled and OSError."""
    target.mkdir(parents=True, exist_ok=True)
    current = _current(target)
    if current is not None and _is_same(source, current):
        return False
    with _fresh_copy(target) as copy:
        for part in _PARTS:
            # The modes come along, whatever the umask, for the programs' user may be another one.
            shutil.copytree(source / part, copy / part, copy_function=shutil.copy)
        link = copy / "link"
        link.symlink_to(f"{copy.name}/bin")
        link.replace(target / "bin")
    _remove_former(target)
    return True


def _current(target: Path) -> Path | None:
    """The copy that DIR/bin leads to."""
    link = target / "bin"
    try:
        led_to = link.readlink()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotInstalled(f"{link} is there, and not from {_PROGRAM}; give it a folder of its own") from error
    if not (led_to.parts[0].startswith(_COPY) and led_to.parts[1:] == ("bin",)):
        raise NotInstalled(f"{link} leads to {led_to}, and not by {_PROGRAM}; give it a folder of its own")
    return target / led_to.parts[0]


@contextmanager
def _fresh_copy(target: Path) -> Iterator[Path]:
    """A folder for a copy, held against other runs; it goes again when the copy fails."""
    copy = Path(tempfile.mkdtemp(prefix=_COPY, dir=target))
    handle = os.open(copy, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        # For all users; and it fails if another run has taken the folder for a dead one's before it was held.
        copy.chmod(0o755)
        yield copy
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise
    finally:
        os.close(handle)


def _remove_former(target: Path) -> None:
    for copy in target.glob(f"{_COPY}*"):
        # Files of another user stay; they only take room.
        with suppress(OSError):
            _remove_if_nobody_holds(copy, target)


def _remove_if_nobody_holds(copy: Path, target: Path) -> None:
    handle = os.open(copy, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Asked while it is held: a run that ended in between has made its copy the current one.
        if copy != _current(target):
            shutil.rmtree(copy, ignore_errors=True)
    finally:
        os.close(handle)


def _is_same(source: Path, copy: Path) -> bool:
    """Whether the copy has the same files with the same content, and all may read them."""
    try:
        return all(_listing(source / part) == _listing(copy / part) for part in _PARTS) and all(
            file.read_bytes() == (copy / file.relative_to(source)).read_bytes() for file in _files(source)
        )
    except OSError:
        return False


def _listing(folder: Path) -> set[tuple[str, int, int]]:
    """Name, mode and size of everything in it."""
    return {
        (str(path.relative_to(folder)), info.st_mode & 0o777, info.st_size if path.is_file() else 0)
        for path in folder.rglob("*")
        if (info := path.stat())
    }


def _files(source: Path) -> Iterator[Path]:
    return (path for part in _PARTS for path in (source / part).rglob("*") if path.is_file())


def _size(source: Path) -> int:
    """In bytes, each name counted: once copied, none is a link to another."""
    return sum(path.stat().st_size for path in _files(source))


def _fail(problem: str, code: ExitCode) -> int:
    sys.stderr.write(f"{_PROGRAM}: {problem}\n")
    return code
