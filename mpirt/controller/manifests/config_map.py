"""
The ConfigMap: the files in /etc/mpi.

Owns: the hostfile, the two scripts, the workers' keeper, and the number of workers that a launcher pod waits for.
What changes when a job is scaled is here and in no pod template, so that scaling restarts no pod.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from mpirt import names
from mpirt.controller.manifests.meta import head
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import NEEDED_KEY, object_name, pod_labels, selector
from mpirt.controller.model.spec import JobSpec
from mpirt.hosts import Form, Host, render

HOSTFILE = "hostfile"
DEEPSPEED_HOSTFILE = "deepspeed-hostfile"
KUBEXEC = "kubexec.sh"
SSH = "ssh"
DISCOVER_HOSTS = "discover_hosts.sh"

_SCRIPT = """\
#!/bin/sh
# {purpose}
program={folder}/bin/{program}
[ -x "$program" ] || program={otherwise}
"""
_RUN = 'exec "$program" "$@"\n'


def config_map(spec: JobSpec, keepers: Mapping[str, str]) -> dict[str, Any]:
    """Return the job's ConfigMap; `keepers` are the keeper's files, in base64."""
    binary = {"binaryData": keepers} if keepers else {}
    return {**head(spec, kinds.CONFIG_MAP), "data": files(spec), **binary}


def files(spec: JobSpec) -> dict[str, str]:
    """Return the text files, by their names."""
    return {
        HOSTFILE: hostfile(spec),
        KUBEXEC: _kubexec(),
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


def workers_selector(spec: JobSpec) -> str:
    """Return the label selector that finds the job's workers by one request; the job's name would take several."""
    return selector(pod_labels(spec.key.kind, spec.key.name, names.WORKER))


def launchers_selector(spec: JobSpec) -> str:
    """Return the label selector for the job's launchers."""
    return selector(pod_labels(spec.key.kind, spec.key.name, names.LAUNCHER))


def _kubexec() -> str:
    purpose = "Runs a command in a worker: mpirun, mpiexec and horovodrun call it as they would call ssh."
    return _script(names.RSH, names.RSH, purpose) + _RUN


def _discover_hosts(spec: JobSpec) -> str:
    # A host with 0 slots is useless, so 0 means that the workers and Horovod choose the number.
    slots = f" --slots {spec.slots}" if spec.slots else ""
    call = f'"$program" --selector {shlex.quote(workers_selector(spec))}{slots} "$@"'
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
