"""
Where each program of the cluster is, made first where it is missing.

Every recipe has a folder of its own in the cache, named after its key, so a second version of Kubernetes costs
only itself. Nothing of it changes the host.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.kube import buildcache, paths, preflight
from testbed.kube.errors import ClusterError
from testbed.kube.programs import debian, gobuild, golang, modules
from testbed.kube.programs.modules import Module


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where each program is. `key` changes with any of them; `versions` are by the recipes' names."""

    etcd: Path
    apiserver: Path
    controller_manager: Path
    scheduler: Path
    proxy: Path
    kubelet: Path
    kubectl: Path
    containerd: Path
    shim_folder: Path
    ctr: Path
    runc: Path
    cni_plugins: Path
    coredns: Path
    pause: Path
    kube_router: Path
    kwok: Path
    key: str
    versions: Mapping[str, str]


def ensure(kubernetes: str) -> Binaries:
    """Make what is missing for a minor version of Kubernetes. Another run that makes it is waited for."""
    wanted = _modules(kubernetes)
    if not _are_made(_folders(wanted).values()):
        with buildcache.exclusive(paths.cache() / "binaries.lock"):
            _make_missing(wanted)
    return locate(_folders(wanted))


def are_cached(kubernetes: str) -> bool:
    """Is there nothing to fetch or build?"""
    return _are_made(_folders(_modules(kubernetes)).values())


def locate(folders: Mapping[str, Path]) -> Binaries:
    """The path of each program in made folders, which are named by kind."""
    kubernetes, containerd = folders["kubernetes"] / "bin", folders["containerd"] / "bin"
    versions = [buildcache.versions_in(folder) for folder in folders.values()]
    return Binaries(
        # Go names a program after the last word of its import path.
        etcd=folders["etcd"] / "bin/server",
        apiserver=kubernetes / "kube-apiserver",
        controller_manager=kubernetes / "kube-controller-manager",
        scheduler=kubernetes / "kube-scheduler",
        proxy=kubernetes / "kube-proxy",
        kubelet=kubernetes / "kubelet",
        kubectl=kubernetes / "kubectl",
        containerd=containerd / "containerd",
        shim_folder=containerd,
        ctr=containerd / "ctr",
        runc=folders["debian"] / "bin/runc",
        cni_plugins=folders["cni"] / "bin",
        coredns=folders["coredns"] / "bin/coredns",
        pause=folders["pause"] / "bin/pause",
        kube_router=folders["kube-router"] / "bin/kube-router",
        kwok=folders["kwok"] / "bin/kwok",
        key=buildcache.key_of(sorted(folder.name for folder in folders.values())),
        versions={name: version for found in versions for name, version in found.items()},
    )


def _modules(kubernetes: str) -> list[Module]:
    return [modules.kubernetes(kubernetes), *modules.others()]


def _folders(wanted: Iterable[Module]) -> dict[str, Path]:
    cache, machine = paths.cache(), platform.machine()
    made = {module.kind: gobuild.final_folder(module, cache, machine) for module in wanted}
    return made | {"debian": debian.final_folder(cache, machine)}


def _are_made(folders: Iterable[Path]) -> bool:
    return all(folder.is_dir() for folder in folders)


def _make_missing(wanted: list[Module]) -> None:
    folders = _folders(wanted)
    missing = [module for module in wanted if not folders[module.kind].is_dir()]
    if missing:
        preflight.check_cache()
        try:
            go = golang.find(max(module.go for module in missing), paths.cache())
            for module in missing:
                gobuild.make(module, go, folders[module.kind])
        except ClusterError as error:
            raise naming_others(error, [minor for minor in modules.minors() if are_cached(minor)]) from error
    if not folders["debian"].is_dir():
        debian.make(folders["debian"])
    buildcache.sweep(paths.cache())


def naming_others(error: ClusterError, made: Sequence[str]) -> ClusterError:
    """The same error, which also says what runs here all the same: the versions that were made before."""
    if not made:
        return error
    others = f"--kubernetes {' or '.join(made)} works without it"
    return ClusterError(error.what, remedy="; ".join(part for part in (error.remedy, others) if part))
