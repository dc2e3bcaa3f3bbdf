"""
The programs that Debian has ready-made: etcd, containerd, runc, the CNI plugins.

Owns: which packages, and which of their files are kept. They run from the cache, beside what the host has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kube import aptroot, aptsources, buildcache
from tests.kube.aptroot import AptRoot
from tests.kube.errors import ClusterError

# The kept files of each package land in bin, those of a cni folder in cni.
KEPT: Mapping[str, Sequence[str]] = {
    "etcd-server": ("usr/bin/etcd",),
    "containerd": ("usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/bin/ctr"),
    "runc": ("usr/sbin/runc",),
    "containernetworking-plugins": (
        "usr/lib/cni/bridge",
        "usr/lib/cni/host-local",
        "usr/lib/cni/loopback",
        "usr/lib/cni/portmap",
        "usr/lib/cni/ptp",
    ),
}


def key(machine: str) -> str:
    """The key of this recipe on a kind of machine, such as x86_64."""
    return buildcache.key_of(machine, aptsources.SUITE, KEPT)


def make(apt: AptRoot, work: Path, into: Path) -> dict[str, str]:
    """Fill `into` and return each package's version; `work` is scratch space."""
    root = work / "root"
    versions = {}
    for package in aptroot.fetch(apt, list(KEPT), work / "packages"):
        aptroot.unpack(package, root)
        versions[package.name.partition("_")[0]] = aptroot.version_of(package)
    for name, files in KEPT.items():
        for file in files:
            _keep(root / file, into, package=name)
    return versions


def _keep(file: Path, into: Path, *, package: str) -> None:
    folder = into / ("cni" if file.parent.name == "cni" else "bin")
    folder.mkdir(parents=True, exist_ok=True)
    if not file.is_file():
        raise ClusterError(
            f"Debian's package {package} has no {file.name} where it was expected",
            remedy=f"correct KEPT in {__name__}",
        )
    file.rename(folder / file.name)
