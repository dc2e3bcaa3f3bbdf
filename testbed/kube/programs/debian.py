"""
What Debian has ready-made: runc, which needs C and its libraries to build.

Owns: which packages, and which of their files are kept. They run from the cache, beside what the host has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.kube import aptroot, aptsources, buildcache
from testbed.kube.errors import ClusterError
from testbed.kube.progress import step

# The kept files of each package land in bin.
KEPT: Mapping[str, Sequence[str]] = {"runc": ("usr/sbin/runc",)}


def final_folder(cache: Path, machine: str) -> Path:
    """Where the kept files are when they are complete."""
    return cache / f"{aptsources.SUITE}-{buildcache.key_of(machine, aptsources.SUITE, KEPT)}"


def make(final: Path) -> None:
    """Fetch the packages and publish what is kept of them."""
    work = final.with_name(f"work-{final.name}")
    buildcache.empty(work)
    with step(f"fetching {', '.join(KEPT)} of {aptsources.SUITE}"):
        apt = aptroot.prepare(work / "apt")
        versions = {}
        for package in aptroot.fetch(apt, list(KEPT), work / "packages"):
            aptroot.unpack(package, work / "root")
            versions[package.name.partition("_")[0]] = aptroot.version_of(package)
        for name, files in KEPT.items():
            for file in files:
                _keep(work / "root" / file, work / "made/bin", package=name)
    buildcache.publish(work / "made", final, versions)


def _keep(file: Path, folder: Path, *, package: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not file.is_file():
        raise ClusterError(
            f"Debian's package {package} has no {file.name} where it was expected",
            remedy=f"correct KEPT in {__name__}",
        )
    file.rename(folder / file.name)
