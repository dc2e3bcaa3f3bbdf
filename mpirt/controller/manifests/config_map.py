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
from mpirt.controller.model.objectnames import NEEDED_KEY, object_name, pod_labels, selector, worker_names
from mpirt.controller.model.spec import JobSpec
from mpirt.hosts import Host, render

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

    They have the names of their pods, which the launcher's DNS doesn't know: so nobody can take one for itself, on
    the host's network neither, and nothing waits for a name server.
    """
    workers = worker_names(spec.key.name, spec.workers.replicas)
    hosts = [launcher_host(spec), *workers] if spec.launcher.works_too else workers
    return render((Host(name, spec.slots) for name in hosts), spec.implementation.form)


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
    call = f'"$program" --selector {shlex.quote(workers_selector(spec))} --slots {spec.slots} "$@"'
    start = _script(names.DISCOVER, "The hosts that may be used now: horovodrun --host-discovery-script")
    if not spec.launcher.works_too:
        return f"{start}exec {call}\n"
    # All or nothing: without the workers the launcher alone would be a lie.
    own = f"echo {launcher_host(spec)}:{spec.slots}"
    return f'{start}hosts=$({call}) || exit\n{own}\n[ -z "$hosts" ] || echo "$hosts"\n'


def _script(program: str, purpose: str) -> str:
    return _SCRIPT.format(purpose=purpose, folder=names.RUNTIME_PATH, program=program)
