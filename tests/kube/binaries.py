"""
The programs of the cluster: fetched, built and cached, and where each of them is.

Two folders in the cache, each named after its recipe's key: what Debian has ready-made, and what is built
from source. Neither changes the host. dnsmasq is the host's package, because it needs many libraries.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.kube import aptprograms, aptroot, aptsources, buildcache, kubebuild, paths
from tests.kube.aptroot import AptRoot
from tests.kube.progress import step


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where each program is. `key` changes with any of them; `versions` are Debian's, by package."""

    etcd: Path
    apiserver: Path
    controller_manager: Path
    scheduler: Path
    kubelet: Path
    kubectl: Path
    containerd: Path
    shim_folder: Path
    ctr: Path
    runc: Path
    cni_plugins: Path
    dnsmasq: Path
    pause: Path
    key: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Folders:
    """The two made folders, which exist when they are complete."""

    programs: Path
    kubernetes: Path

    @property
    def are_made(self) -> bool:
        return self.programs.is_dir() and self.kubernetes.is_dir()


def ensure() -> Binaries:
    """Make what is missing, and say where everything is. Another run that makes it is waited for."""
    folders = folders_in(paths.cache(), platform.machine())
    if not folders.are_made:
        with buildcache.exclusive(paths.cache() / "binaries.lock"):
            _make_missing(folders)
    versions = buildcache.versions_in(folders.programs) | buildcache.versions_in(folders.kubernetes)
    return locate(folders, versions)


def are_cached() -> bool:
    """Is there nothing to fetch or build?"""
    return folders_in(paths.cache(), platform.machine()).are_made


def folders_in(cache: Path, machine: str) -> Folders:
    """Where the recipes of this checkout keep what they make."""
    return Folders(
        programs=cache / f"{aptsources.SUITE}-{aptprograms.key(machine)}",
        kubernetes=cache / f"kubernetes-{kubebuild.VERSION}-{kubebuild.key(machine)}",
    )


def locate(folders: Folders, versions: Mapping[str, str]) -> Binaries:
    """The path of each program in made folders."""
    ready, built = folders.programs / "bin", folders.kubernetes / "bin"
    return Binaries(
        etcd=ready / "etcd",
        apiserver=built / "kube-apiserver",
        controller_manager=built / "kube-controller-manager",
        scheduler=built / "kube-scheduler",
        kubelet=built / "kubelet",
        kubectl=built / "kubectl",
        containerd=ready / "containerd",
        shim_folder=ready,
        ctr=ready / "ctr",
        runc=ready / "runc",
        cni_plugins=folders.programs / "cni",
        dnsmasq=Path("/usr/sbin/dnsmasq"),
        pause=built / "pause",
        key=buildcache.key_of(folders.programs.name, folders.kubernetes.name),
        versions=versions,
    )


def _make_missing(folders: Folders) -> None:
    cache = paths.cache()
    if folders.are_made:
        return
    _sweep(cache, keep=_work_folder(folders.kubernetes))
    with step("reading what bookworm has"):
        apt = aptroot.prepare(cache / "work-apt")
    if not folders.programs.is_dir():
        _make_programs(apt, folders.programs)
    if not folders.kubernetes.is_dir():
        _make_kubernetes(apt, folders.kubernetes)
    _sweep(cache)


def _make_programs(apt: AptRoot, final: Path) -> None:
    work = _work_folder(final)
    with step("fetching etcd, containerd, runc and the CNI plugins"):
        versions = aptprograms.make(apt, work, work / "made")
    buildcache.publish(work / "made", final, versions)


def _make_kubernetes(apt: AptRoot, final: Path) -> None:
    work = _work_folder(final)
    buildcache.empty(work, but=kubebuild.GO_CACHE)
    made, versions = kubebuild.make(apt, work)
    buildcache.publish(made, final, versions)


def _work_folder(final: Path) -> Path:
    return final.with_name(f"work-{final.name}")


def _sweep(cache: Path, *, keep: Path | None = None) -> None:
    """Remove what this run or a killed one left unfinished; only the holder of the lock may."""
    for left in cache.glob("work-*"):
        if left != keep:
            shutil.rmtree(left)
