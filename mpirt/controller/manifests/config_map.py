"""
The ConfigMap: what stands in /etc/mpi.

Owns: the hostfile, the two scripts, the workers' keeper, and the number of workers that a launcher pod waits for.
What changes when a job is scaled is here and in no pod template, so that scaling restarts nobody.
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
KUBEXEC = "kubexec.sh"
DISCOVER_HOSTS = "discover_hosts.sh"

_SCRIPT = """\
#!/bin/sh
# {purpose}
program={folder}/bin/{program}
[ -x "$program" ] || program={program}
"""


def config_map(spec: JobSpec, keepers: Mapping[str, str]) -> dict[str, Any]:
    """The job's ConfigMap, with these files of the keeper, in base64."""
    data = {
        HOSTFILE: hostfile(spec),
        KUBEXEC: _kubexec(),
        DISCOVER_HOSTS: _discover_hosts(spec),
        NEEDED_KEY: str(spec.workers.needed),
    }
    binary = {"binaryData": keepers} if keepers else {}
    return {**head(spec, kinds.CONFIG_MAP), "data": data, **binary}


def hostfile(spec: JobSpec) -> str:
    """
    All workers that are wanted, as the job's MPI reads them.

    They have the names of their pods, which Open MPI's launcher can't find in the DNS: so it can't take one for
    itself, on the host's network neither, and waits for no name server.
    """
    workers = spec.workers.names
    hosts = [launcher_host(spec), *workers] if spec.launcher.works_too else workers
    form = spec.implementation.form
    if spec.slots:
        return render((Host(name, spec.slots) for name in hosts), form)
    # As mpi-operator writes it. What it means is the MPI's to say.
    return "".join(f"{name}{':' if form is Form.HYDRA else ' slots='}0\n" for name in hosts)


def launcher_host(spec: JobSpec) -> str:
    """The launcher pod's host name."""
    return object_name(kinds.JOB, spec.key.name)


def workers_selector(spec: JobSpec) -> str:
    """The job's workers, as one question to the API server: by the job's name alone it would take several."""
    return selector(pod_labels(spec.key.name, names.WORKER))


def launchers_selector(spec: JobSpec) -> str:
    """The job's launchers."""
    return selector(pod_labels(spec.key.name, names.LAUNCHER))


def _kubexec() -> str:
    purpose = "Runs a command in a worker: mpirun, mpiexec and horovodrun call it as they would call ssh."
    return _script(names.RSH, purpose) + 'exec "$program" "$@"\n'


def _discover_hosts(spec: JobSpec) -> str:
    # Nobody can use a host with no slots, so that 0 leaves the number to the workers and to Horovod.
    slots = f" --slots {spec.slots}" if spec.slots else ""
    call = f'"$program" --selector {shlex.quote(workers_selector(spec))}{slots} "$@"'
    start = _script(names.DISCOVER, "The hosts that may be used now: horovodrun --host-discovery-script")
    own = (
        f"echo {launcher_host(spec)}{f':{spec.slots}' if spec.slots else ''}\n" if spec.launcher.works_too else ""
    )
    if not spec.has_workers:
        return f"{start}{own}"
    if not own:
        return f"{start}exec {call}\n"
    # All or nothing: without the workers the launcher alone would be a lie.
    return f'{start}hosts=$({call}) || exit\n{own}[ -z "$hosts" ] || echo "$hosts"\n'


def _script(program: str, purpose: str) -> str:
    return _SCRIPT.format(purpose=purpose, folder=names.RUNTIME_PATH, program=program)
