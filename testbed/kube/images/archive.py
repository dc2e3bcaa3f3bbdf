"""
The docker-archive format: one tar with a root file system, a configuration and a manifest.

Pure but for the files it is told to read and write. containerd, Docker and Podman load what it writes.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LAYER = "layer.tar"


@dataclass(frozen=True, slots=True)
class Archive:
    """One image on disk. `references` are its names in a cluster, the one for manifests first."""

    name: str
    key: str
    path: Path
    size: int
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """How a container of the image starts where its pod doesn't say; an empty user is root."""

    command: tuple[str, ...] = ("/bin/sh",)
    entrypoint: tuple[str, ...] = ()
    user: str = ""
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    def config(self) -> Mapping[str, object]:
        said = {"Cmd": list(self.command), "Entrypoint": list(self.entrypoint), "User": self.user}
        return {"Env": [f"PATH={self.path}"], **{name: value for name, value in said.items() if value}}


SHELL = Start()


def references(name: str, key: str) -> tuple[str, str]:
    """A stable name for manifests, and one that says what is really in a node."""
    return f"mpirt-test/{name}:dev", f"mpirt-test/{name}:{key}"


def write(target: Path, layer: Path, *, tags: Sequence[str], architecture: str, start: Start = SHELL) -> None:
    """Write a docker-archive with `layer`, a plain tar, as its only layer. Its content is never in memory."""
    config = _encoded(_configuration(f"sha256:{_digest_of(layer)}", architecture, start))
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": list(tags), "Layers": [_LAYER]}]
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as tar:
        _add(tar, "manifest.json", _encoded(manifest))
        _add(tar, config_name, config)
        with layer.open("rb") as content:
            tar.addfile(_member(_LAYER, layer.stat().st_size), content)


def _configuration(diff_id: str, architecture: str, start: Start) -> Mapping[str, object]:
    return {
        "architecture": architecture,
        "os": "linux",
        "config": start.config(),
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _encoded(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(_member(name, len(content)), io.BytesIO(content))


def _member(name: str, size: int) -> tarfile.TarInfo:
    # Without owner and time, the same image is the same file.
    member = tarfile.TarInfo(name)
    member.size = size
    return member
