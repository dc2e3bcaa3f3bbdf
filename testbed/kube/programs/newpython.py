"""
A newer Python than bookworm's: that of Debian trixie, with the packages that the controller imports.

Owns: which packages of Debian and PyPI these are. It runs from the cache, as any user, by its own loader and
libraries, so that a test can start the controller with it on whatever the host is.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from testbed.kube import aptroot, buildcache, paths
from testbed.kube.images import pip
from testbed.kube.images.recipes import CONTROLLER
from testbed.kube.progress import step

SUITE = "trixie"
VERSION = "3.13"

_DEBIAN = (
    *(f"libpython{VERSION}-minimal", f"libpython{VERSION}-stdlib", f"python{VERSION}-minimal"),
    *("libc6", "libexpat1", "libffi8", "libssl3t64", "libzstd1", "zlib1g"),
)
_START = """\
#!/bin/sh
root="$(dirname "$(dirname "$(readlink -f "$0")")")/root/usr"
export PYTHONHOME="$root"
for lib in "$root"/lib/*-linux-gnu; do
    exec "$lib"/ld-linux-*.so.* --library-path "$lib" "$root/bin/python{version}" "$@"
done
"""


@dataclass(frozen=True, slots=True)
class NewPython:
    """Where it is."""

    program: Path
    packages: Path
    """The folder of PyPI's packages, for PYTHONPATH."""


def ensure() -> NewPython:
    """The newer Python, fetched first where it is missing; a run that fetches it is waited for."""
    final = _final_folder()
    if not final.is_dir():
        with buildcache.exclusive(paths.cache() / "newpython.lock"):
            if not final.is_dir():
                _make(final)
    return NewPython(final / "bin/python3", final / "packages")


def _final_folder() -> Path:
    recipe = (SUITE, VERSION, _DEBIAN, _START, CONTROLLER.requirements.read_text())
    return paths.cache() / f"python-{VERSION}-{buildcache.key_of(platform.machine(), *recipe)}"


def _make(final: Path) -> None:
    # Not work-*: who holds another lock removes those.
    work = final.with_name(f"fetching-{final.name}")
    buildcache.empty(work)
    made = work / "made"
    made.mkdir()
    with step(f"fetching Python {VERSION} of {SUITE}"):
        apt = aptroot.prepare(work / "apt", SUITE)
        for package in aptroot.fetch(apt, _DEBIAN, work / "packages"):
            aptroot.unpack(package, made / "root")
        pip.install(CONTROLLER.requirements, into=made / "packages", python=VERSION)
    program = made / "bin/python3"
    program.parent.mkdir()
    program.write_text(_START.format(version=VERSION))
    program.chmod(0o755)
    buildcache.publish(made, final, {"python": VERSION})
    buildcache.empty(work)
    work.rmdir()
