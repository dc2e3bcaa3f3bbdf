"""
PyPI's packages, fetched by pip on the host with the host's own configuration of pip.

Owns: pip's words. They are for bookworm's Python where nothing else is said, whatever Python runs this.
"""

from __future__ import annotations

import sys
from pathlib import Path

from testbed.kube.errors import ClusterError
from testbed.kube.shell import run

_PYTHON = "3.11"

_REMEDY = "check the network and pip's configuration; then run again"


def install(requirements: Path, *, into: Path, python: str = _PYTHON) -> None:
    """Put packages for that Python into a folder. The list is complete."""
    # pip compiles for the Python that it runs on.
    _pip(
        "install",
        *(["--no-compile"] if python != _PYTHON else []),
        "--no-deps",
        f"--python-version={python}",
        "--only-binary=:all:",
        f"--requirement={requirements}",
        f"--target={into}",
    )


def download_source(name: str, version: str, *, into: Path) -> None:
    """Put a package's source archive into a folder."""
    _pip("download", "--no-deps", "--no-binary=:all:", f"--dest={into}", f"{name}=={version}")


def download_wheel(name: str, version: str, *, into: Path) -> None:
    """Put a package's wheel into a folder."""
    _pip("download", "--no-deps", "--only-binary=:all:", f"--dest={into}", f"{name}=={version}")


def _pip(*words: str) -> None:
    try:
        run(sys.executable, "-m", "pip", "--quiet", *words)
    except ClusterError as error:
        raise ClusterError(error.what, remedy=_REMEDY) from error
