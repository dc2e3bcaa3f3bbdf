"""
The ConfigMap with the files in /etc/mpi, and the volumes by which pods have them.

Owns: the hostfile, the scripts, the workers' keeper, and the number of workers that a launcher pod waits for;
which of these files are where, for each kind of job. What changes when a job is scaled is here and in no pod
template, so that scaling restarts no pod. Kubernetes updates the files in running pods, except for the single file
that stands in a folder of the image.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mpirt import keeper, names
from mpirt.controller.manifests.supporting import head
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import NEEDED_KEY, object_name, pod_labels, selector
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.hosts import Form, Host, render

HOSTFILE = names.HOSTFILE
DEEPSPEED_HOSTFILE = "deepspeed-hostfile"
KUBEXEC = "kubexec.sh"
SSH = "ssh"
DISCOVER_HOSTS = "discover_hosts.sh"

CONFIG_VOLUME = "mpi-job-config"
_EDL_VOLUME, _JOB_VOLUME = "mpirt-edl", "mpirt-job"
VOLUMES = (CONFIG_VOLUME, _EDL_VOLUME, _JOB_VOLUME)
"""The names of all volumes with files of the ConfigMap."""

_EXECUTABLE = 0o555
_READABLE = 0o444
_MODES = {HOSTFILE: _READABLE, DEEPSPEED_HOSTFILE: _READABLE}

_SCRIPT = """\
#!/bin/sh
# {purpose}
program={folder}/bin/{program}
[ -x "$program" ] || program={otherwise}
"""
_RUN = 'exec "$program" "$@"\n'

_MPI_FILES = (HOSTFILE, KUBEXEC, DISCOVER_HOSTS)
_OPEN_MPI_HOSTFILE = {kinds.MPI_JOB: HOSTFILE, kinds.TRAINING_JOB: DEEPSPEED_HOSTFILE}


def keepers_for_nodes(settings: Settings) -> Mapping[str, str]:
    """Return the keeper's files that nodes can run; all, where it is unknown what these are."""
    if not settings.architectures:
        return settings.keepers
    wanted = {keeper.file_name(each) for each in settings.architectures}
    return {name: file for name, file in settings.keepers.items() if name in wanted}


def config_map(spec: JobSpec, keepers: Mapping[str, str]) -> dict[str, Any]:
    """Return the job's ConfigMap; `keepers` are the keeper's files, in base64."""
    binary = {"binaryData": keepers} if keepers else {}
    return {**head(spec, kinds.CONFIG_MAP), "data": files(spec), **binary}


def files(spec: JobSpec) -> dict[str, str]:
    """Return the text files, by their names."""
    purpose = "Runs a command in a worker: mpirun, mpiexec and horovodrun call it as they would call ssh."
    return {
        HOSTFILE: hostfile(spec),
        KUBEXEC: _script(names.RSH, names.RSH, purpose) + _RUN,
        DISCOVER_HOSTS: _discover_hosts(spec),
        NEEDED_KEY: str(spec.workers.needed),
        **(_of_training_job(spec) if spec.key.kind == kinds.TRAINING_JOB else {}),
    }


def _of_training_job(spec: JobSpec) -> dict[str, str]:
    """Return the files that et-operator's launchers have beside: its own form of the hostfile, and DeepSpeed's."""
    hosts = [Host(name, spec.slots) for name in spec.workers.hosts]
    return {
        HOSTFILE: render(hosts, Form.HOROVOD),
        DEEPSPEED_HOSTFILE: render(hosts, Form.HOSTFILE),
        SSH: _script(SSH, names.RSH, "Runs a command in a worker, for launchers that call ssh.") + _RUN,
    }


def hostfile(spec: JobSpec) -> str:
    """
    Return the hostfile in the format of the job's MPI: all desired workers, after the launcher if that runs ranks.

    Hosts are named after their pods. Open MPI's launcher can't resolve these names in the DNS, so it never
    mistakes a worker for itself, even on the host's network, and waits for no name server.
    """
    workers = spec.workers.hosts
    hosts = [launcher_host(spec), *workers] if spec.launcher.works_too else workers
    form = spec.implementation.form
    if spec.slots:
        return render((Host(name, spec.slots) for name in hosts), form)
    # 0 slots, as mpi-operator writes it. The MPI decides what that means.
    return "".join(f"{name}{':' if form is Form.HYDRA else ' slots='}0\n" for name in hosts)


def launcher_host(spec: JobSpec) -> str:
    """The launcher pod's host name."""
    return object_name(kinds.JOB, spec.key.name)


def pods_selector(spec: JobSpec, role: str) -> str:
    """Return the label selector of the job's pods of a role: one request finds them, by their name several."""
    return selector(pod_labels(spec.key.kind, spec.key.name, role))


def _discover_hosts(spec: JobSpec) -> str:
    # A host with 0 slots is useless, so 0 means that the workers and Horovod choose the number.
    slots = f" --slots {spec.slots}" if spec.slots else ""
    call = f'"$program" --selector {shlex.quote(pods_selector(spec, names.WORKER))}{slots} "$@"'
    purpose = "The hosts that may be used now: horovodrun --host-discovery-script"
    start = _script(names.DISCOVER, names.DISCOVER, purpose)
    own = (
        f"echo {launcher_host(spec)}{f':{spec.slots}' if spec.slots else ''}\n" if spec.launcher.works_too else ""
    )
    if not spec.has_workers:
        return f"{start}{own}"
    if not own:
        return f"{start}exec {call}\n"
    # All or nothing: if the workers can't be listed, the launcher alone would be a wrong answer.
    return f'{start}hosts=$({call}) || exit\n{own}[ -z "$hosts" ] || echo "$hosts"\n'


def _script(program: str, otherwise: str, purpose: str) -> str:
    return _SCRIPT.format(purpose=purpose, folder=names.RUNTIME_PATH, program=program, otherwise=otherwise)


@dataclass(frozen=True, slots=True)
class _Folder:
    """One folder."""

    path: str
    volume: str
    files: Mapping[str, str]
    """The names of the files, by their keys in the ConfigMap."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Files that stand alone elsewhere, by their paths."""


_MPI_JOB = (_Folder(names.MPI_FOLDER, CONFIG_VOLUME, {key: key for key in _MPI_FILES}),)
# As et-operator has them. Its launchers start commands by ssh: that of the image must not be found first.
_TRAINING_JOB = (
    _Folder(
        names.MPI_FOLDER,
        CONFIG_VOLUME,
        {key: key for key in (*_MPI_FILES, DEEPSPEED_HOSTFILE, SSH)},
        {"/usr/local/bin/ssh": SSH},
    ),
    _Folder("/etc/edl", _EDL_VOLUME, {key: key for key in (HOSTFILE, DISCOVER_HOSTS)}),
    _Folder("/job", _JOB_VOLUME, {DEEPSPEED_HOSTFILE: HOSTFILE}),
)
_FOLDERS = {kinds.MPI_JOB: _MPI_JOB, kinds.TRAINING_JOB: _TRAINING_JOB}


def hostfile_path(spec: JobSpec) -> str:
    """Return the path of the hostfile in the form that the job's MPI reads."""
    return f"{names.MPI_FOLDER}/{_OPEN_MPI_HOSTFILE[spec.key.kind]}"


def volumes(spec: JobSpec) -> list[dict[str, Any]]:
    """Return the launcher's volumes with files of the ConfigMap."""
    return [config_volume(spec, one.files, volume=one.volume) for one in _FOLDERS[spec.key.kind]]


def mounts(spec: JobSpec) -> Iterable[dict[str, Any]]:
    """Yield where the launcher's main container has them."""
    for one in _FOLDERS[spec.key.kind]:
        yield {"name": one.volume, "mountPath": one.path}
        for path, name in one.links.items():
            yield {"name": one.volume, "mountPath": path, "subPath": name}


def config_volume(spec: JobSpec, files: Mapping[str, str], *, volume: str = CONFIG_VOLUME) -> dict[str, Any]:
    """Return a volume with files of the job's ConfigMap, names by keys, readable by any user of the pod."""
    return {"name": volume, "configMap": _config_files(spec, files)}


def config_volume_with(spec: JobSpec, files: Mapping[str, str], optional: Iterable[str]) -> dict[str, Any]:
    """
    Return the same volume with `optional` programs added: pods start without them, too.

    Another version of the controller may remove them from the ConfigMap while pods of this template are recreated.
    """
    others = {**_config_files(spec, {key: key for key in optional}), "optional": True}
    sources = [_config_files(spec, files), others]
    return {"name": CONFIG_VOLUME, "projected": {"sources": [{"configMap": source} for source in sources]}}


def _config_files(spec: JobSpec, files: Mapping[str, str]) -> dict[str, Any]:
    items = [{"key": key, "path": name, "mode": _MODES.get(key, _EXECUTABLE)} for key, name in files.items()]
    return {"name": object_name(kinds.CONFIG_MAP, spec.key.name), "items": items}
