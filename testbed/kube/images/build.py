"""
Building the images that the cache lacks.

An image is built by one run at a time, and a run builds two at once. An archive appears under its name when it
is whole, and what an interrupted run left is removed by the next one.
"""

from __future__ import annotations

import os
import platform
import shutil
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from pathlib import Path

from testbed.kube import buildcache, packages, preflight
from testbed.kube.images import archive, controllers, folders, keys, pip, programs, recipes, rootfs, scratch, store
from testbed.kube.images.archive import Archive, Start
from testbed.kube.images.recipes import AnyRecipe, ControllerRecipe, PyPiRecipe, Recipe, RuntimeRecipe, SshRecipe
from testbed.kube.images.rootfs import Mirror
from testbed.kube.progress import step

# Each build waits for the network and the disk half of its time.
_AT_ONCE = 2

# What images call the machines that uname calls otherwise.
_ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}


def ensure(names: Sequence[str] | None = None) -> list[Archive]:
    """The archives of these images, or of all; what is missing is built first."""
    wanted = [recipes.named(name) for name in names] if names is not None else list(recipes.ALL)
    missing = [recipe for recipe in wanted if _find(recipe) is None]
    if missing:
        _build_all(missing)
    return [found for recipe in wanted if (found := _find(recipe))]


def pause(program: Path) -> Archive:
    """The image that keeps a pod's namespaces: nothing but this program, which must be static."""
    key = keys.program_key(program.read_bytes())
    found = store.find("pause", key)
    if found:
        return found
    with _lock("pause"):
        work = store.work_folder("pause")
        layer = work / "rootfs.tar"
        with tarfile.open(layer, "w") as tar:
            tar.add(program, "pause")
        return _publish(layer, "pause", key, start=Start(command=("/pause",)))


def _find(recipe: AnyRecipe) -> Archive | None:
    return store.find(recipe.name, store.key_of(recipe))


def _build_all(missing: Sequence[AnyRecipe]) -> None:
    preflight.check_machine(fresh=True)
    packages.ensure()
    if any(isinstance(recipe, RuntimeRecipe | ControllerRecipe) for recipe in missing):
        programs.ensure()
    mirror = rootfs.host_mirror()
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        builds = [pool.submit(_build, recipe, mirror) for recipe in missing]
        try:
            for build in as_completed(builds):
                build.result()
        except BaseException:
            # What is being built is brought to its end, and nothing else is begun.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _build(recipe: AnyRecipe, mirror: Mirror) -> None:
    with _lock(recipe.name):
        # Another run may have built it while this one waited.
        if _find(recipe) is not None:
            return
        if isinstance(recipe, RuntimeRecipe):
            _build_runtime(recipe, mirror)
        elif isinstance(recipe, ControllerRecipe):
            _build_controller(recipe, mirror)
        else:
            _build_locked(recipe, mirror)


def _build_runtime(recipe: RuntimeRecipe, mirror: Mirror) -> None:
    key = store.key_of(recipe)
    python = folders.python(recipe, mirror)
    work = store.work_folder(recipe.name)
    with step(f"image {recipe.name}"):
        layer = work / "rootfs.tar"
        folders.write_layer(folders.with_mpirt(python, work), layer)
        _publish(layer, recipe.name, key, start=folders.START)


def _build_controller(recipe: ControllerRecipe, mirror: Mirror) -> None:
    key = store.key_of(recipe)
    controllers.prepare(recipe, mirror)
    work = store.work_folder(recipe.name)
    with step(f"image {recipe.name}"):
        layer = work / "rootfs.tar"
        controllers.write_layer(recipe, mirror, work, layer)
        _publish(layer, recipe.name, key, start=controllers.START)


def _build_locked(recipe: Recipe, mirror: Mirror) -> None:
    key = store.key_of(recipe)
    built = [scratch.files(recipe, recipe.scratch, mirror)] if recipe.scratch else []
    if isinstance(recipe, PyPiRecipe) and recipe.shares:
        built = [_shared(recipe.shares, mirror)]
    work = store.work_folder(recipe.name)
    with step(f"image {recipe.name}"):
        layer = work / "rootfs.tar"
        if isinstance(recipe, PyPiRecipe):
            built.append(_of_pypi(recipe, work / "pypi"))
        rootfs.build(rootfs.image_argv(recipe, mirror, layer, built), work)
        if not isinstance(recipe, SshRecipe):
            rootfs.check_no_remote_shell(layer)
        _publish(layer, recipe.name, key)


def _shared(name: str, mirror: Mirror) -> Path:
    """What another recipe's scratch build has made. That is its own matter, under its own lock."""
    other = recipes.named(name)
    assert isinstance(other, Recipe)
    assert other.scratch is not None
    with _lock(other.name):
        return scratch.files(other, other.scratch, mirror)


def _of_pypi(recipe: PyPiRecipe, folder: Path) -> Path:
    """A folder with its packages of PyPI."""
    if recipe.requirements.exists():
        pip.install(recipe.requirements, into=folder / "wheels")
    for name, version in recipe.archives:
        pip.download_wheel(name, version, into=folder / "archives")
    for name, version in recipe.sources:
        pip.download_source(name, version, into=folder / "sources")
    return folder


def _publish(layer: Path, name: str, key: str, *, start: Start = archive.SHELL) -> Archive:
    """Turn a root file system in a work folder into an archive in the cache, and remove the work folder."""
    machine = platform.machine()
    made = layer.with_name("archive.tar")
    tags = archive.references(name, key)
    archive.write(made, layer, tags=tags, architecture=_ARCHITECTURES.get(machine, machine), start=start)
    _sync(made)
    path = made.rename(store.path_of(name, key))
    shutil.rmtree(layer.parent)
    store.remove_former(name, key)
    return Archive(name, key, path, path.stat().st_size, tags)


def _sync(path: Path) -> None:
    """A machine that loses its power right after the rename must not keep the name without the content."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _lock(name: str) -> AbstractContextManager[None]:
    return buildcache.exclusive(store.folder() / f"{name}.lock")
