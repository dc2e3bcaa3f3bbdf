"""
The image of examples/pi for the test cluster: what examples/pi/Dockerfile makes, without Docker.

The program is compiled by Debian's own mpicc in a root file system that is thrown away after it, and put into the
test image with Open MPI 4. Both are kept, so that only a changed source costs time.
"""

from __future__ import annotations

import json
import platform
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.kube import buildcache, cluster, images, nodes, packages, state
from testbed.kube.images import archive, build, folders, rootfs, store
from testbed.kube.images.archive import Archive, Start
from testbed.kube.layout import Node
from testbed.kube.paths import PROJECT
from testbed.kube.progress import step

SOURCE = PROJECT / "examples/pi/pi.c"
COMPILE = PROJECT / "demo/compile.sh"
PLACE = "usr/local/bin/pi"

# As examples/pi/Dockerfile has it.
START = Start(user="65532:65532")
SUITE = "bookworm"
PACKAGES = ("gcc", "libc6-dev", "libopenmpi-dev")

_NAME = "pi"
_BASE = "openmpi4"
_ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}


def load() -> str:
    """Put the image on every node of the test cluster, made when it is missing. Returns its reference."""
    made = _archive()
    found = cluster.binaries()

    def load_on(node: Node) -> None:
        images.load([made], lambda *words: nodes.ctr(node, found, *words))

    with ThreadPoolExecutor() as pool:
        list(pool.map(load_on, state.running().members))
    return made.references[0]


def _archive() -> Archive:
    [base] = build.ensure([_BASE])
    texts = [file.read_text(encoding="utf-8") for file in (SOURCE, COMPILE)]
    key = buildcache.key_of(platform.machine(), SUITE, PACKAGES, texts, base.key)
    with buildcache.exclusive(store.folder() / f"{_NAME}.lock"):
        return store.find(_NAME, key) or _made(base, key)


def _made(base: Archive, key: str) -> Archive:
    packages.ensure()
    work = store.work_folder(_NAME)
    program, layer, made = work / "pi", work / "rootfs.tar", work / "archive.tar"
    with step("compiling examples/pi/pi.c"):
        hook = rootfs.script_hook(COMPILE, SOURCE, program)
        rootfs.build(rootfs.scratch_argv(SUITE, PACKAGES, rootfs.host_mirror(), hook), work)
    with step("image pi"):
        _copy_layer(base.path, layer)
        with tarfile.open(layer, "a") as tar:
            tar.add(program, PLACE, filter=folders.neutral)
        machine = platform.machine()
        tags = archive.references(_NAME, key)
        architecture = _ARCHITECTURES.get(machine, machine)
        archive.write(made, layer, tags=tags, architecture=architecture, start=START)
        path = made.rename(store.path_of(_NAME, key))
    shutil.rmtree(work)
    store.remove_former(_NAME, key)
    return Archive(_NAME, key, path, path.stat().st_size, tags)


def _copy_layer(image: Path, target: Path) -> None:
    """The root file system of a docker-archive with one layer."""
    with tarfile.open(image) as tar:
        manifest = tar.extractfile("manifest.json")
        assert manifest is not None
        [name] = json.load(manifest)[0]["Layers"]
        layer = tar.extractfile(name)
        assert layer is not None
        with target.open("wb") as file:
            shutil.copyfileobj(layer, file)
