"""The implementations of MPI, and how each is told to use mpirt-rsh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.e2e.rsh import launcher

FAILS = ("sh", "-c", "test $(hostname) != worker-1 || exit 7")
# The end of a program without MPI that fails at once may escape a daemon of Open MPI 5, whatever the agent is.
FAILS_AFTER_INIT = (
    "python3",
    "-c",
    """
import ctypes, os, socket
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
if socket.gethostname() == "worker-1":
    os._exit(7)
mpi.MPI_Finalize()
""",
)


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
    {"OMPI_MCA_plm_rsh_agent": "mpirt-rsh", "OMPI_MCA_orte_default_hostfile": launcher.HOSTFILE},
    MPIRUN,
)
OPEN_MPI_5 = Mpi(
    "openmpi5",
    {"PRTE_MCA_plm_ssh_agent": "mpirt-rsh", "PRTE_MCA_prte_default_hostfile": launcher.HOSTFILE},
    MPIRUN,
    failing=FAILS_AFTER_INIT,
)
HYDRA = Mpi(
    "mpich",
    {"HYDRA_LAUNCHER": "rsh", "HYDRA_LAUNCHER_EXEC": "mpirt-rsh", "HYDRA_HOST_FILE": launcher.HOSTFILE},
    ("mpiexec.hydra",),
    host_line="{}:1",
)
