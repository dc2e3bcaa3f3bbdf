"""
The folders in which a launcher finds the files of its job's ConfigMap.

Owns: which files are where, for each kind of job. Kubernetes updates them in running pods, except for the single
file that stands in a folder of the image.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mpirt import names
from mpirt.controller.manifests import config_map as config
from mpirt.controller.manifests import pods
from mpirt.controller.model import kinds
from mpirt.controller.model.spec import JobSpec

_EDL_VOLUME, _JOB_VOLUME = "mpirt-edl", "mpirt-job"
VOLUMES = (pods.CONFIG_VOLUME, _EDL_VOLUME, _JOB_VOLUME)
"""The names of all volumes."""

_MPI_FILES = (config.HOSTFILE, config.KUBEXEC, config.DISCOVER_HOSTS)


@dataclass(frozen=True, slots=True)
class _Folder:
    """One folder."""

    path: str
    volume: str
    files: Mapping[str, str]
    """The names of the files, by their keys in the ConfigMap."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Files that stand alone elsewhere, by their paths."""


_MPI_JOB = (_Folder(names.MPI_FOLDER, pods.CONFIG_VOLUME, {key: key for key in _MPI_FILES}),)
# As et-operator has them. Its launchers start commands by ssh: that of the image must not be found first.
_TRAINING_JOB = (
    _Folder(
        names.MPI_FOLDER,
        pods.CONFIG_VOLUME,
        {key: key for key in (*_MPI_FILES, config.DEEPSPEED_HOSTFILE, config.SSH)},
        {"/usr/local/bin/ssh": config.SSH},
    ),
    _Folder("/etc/edl", _EDL_VOLUME, {key: key for key in (config.HOSTFILE, config.DISCOVER_HOSTS)}),
    _Folder("/job", _JOB_VOLUME, {config.DEEPSPEED_HOSTFILE: config.HOSTFILE}),
)
_FOLDERS = {kinds.MPI_JOB: _MPI_JOB, kinds.TRAINING_JOB: _TRAINING_JOB}
_OPEN_MPI_HOSTFILE = {kinds.MPI_JOB: config.HOSTFILE, kinds.TRAINING_JOB: config.DEEPSPEED_HOSTFILE}


def hostfile_path(spec: JobSpec) -> str:
    """Return the path of the hostfile in the form that the job's MPI reads."""
    return f"{names.MPI_FOLDER}/{_OPEN_MPI_HOSTFILE[spec.key.kind]}"


def volumes(spec: JobSpec) -> list[dict[str, Any]]:
    """Return the launcher's volumes with files of the ConfigMap."""
    return [pods.config_volume(spec, one.files, volume=one.volume) for one in _FOLDERS[spec.key.kind]]


def mounts(spec: JobSpec) -> Iterable[dict[str, Any]]:
    """Yield where the launcher's main container has them."""
    for one in _FOLDERS[spec.key.kind]:
        yield {"name": one.volume, "mountPath": one.path}
        for path, name in one.links.items():
            yield {"name": one.volume, "mountPath": path, "subPath": name}
