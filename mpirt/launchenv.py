"""
The variables by which launchers are told how to start their daemons.

Owns: which launcher wants which. Three need them: the switchboard, which refuses what goes wrong without them,
`mpirt env`, and the controller.

Every daemon is to be started by the launcher itself (workers can't start any), and to keep the session that
started it (else nobody sees it die); then as many sessions must be allowed at a time as there are daemons.

No rank is to be bound to a processor: the daemon of each pod counts from the node's first one, so ranks of two
pods would share it while others idle. MPICH binds none by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# {daemons} is how many are started.
OPEN_MPI_4: Mapping[str, str] = {
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "OMPI_MCA_orte_leave_session_attached": "1",
    "OMPI_MCA_plm_rsh_num_concurrent": "{daemons}",
}
# Open MPI 5 has its runtime from PRRTE, and ignores the names of before.
PRRTE: Mapping[str, str] = {
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
    "PRTE_MCA_prte_leave_session_attached": "1",
    "PRTE_MCA_plm_ssh_num_concurrent": "{daemons}",
}

# The variables that name a launcher's list of hosts.
HOSTFILES = (
    "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE",
)  # fmt: skip

# PE=N is one of the modifiers of --map-by; the others are options, parts of them, or names of variables.
_PLACES = re.compile(r"[:,]pe=|\bpe-list=|rank_?file|-cpus-per-(?:proc|rank)|^i_mpi_pin", re.IGNORECASE)


def places_ranks(words: Iterable[str]) -> bool:
    """
    Whether one of a launcher's words, or of its variables, says which processors its ranks get.

    Open MPI 5 refuses most of these words beside a policy of none, and Open MPI 4 ignores them then. --bind-to is
    none of them: it overrides the variable by itself.
    """
    return any(map(_PLACES.search, words))


def open_mpi_4(
    agent: str, daemons: int, *, hostfile: str = "", slots: int = 0, binds: bool = False
) -> dict[str, str]:
    """
    Open MPI 4; horovodrun, too, if the agent is /etc/mpi/kubexec.sh.

    With `binds`, ranks are bound as it likes.
    """
    hosts = _hosts("OMPI_MCA_orte", hostfile, slots)
    binding = {} if binds else {"OMPI_MCA_hwloc_base_binding_policy": "none"}
    return {"OMPI_MCA_plm_rsh_agent": agent, **_counted(OPEN_MPI_4, daemons), **binding, **hosts}


def open_mpi_5(
    agent: str, daemons: int, *, hostfile: str = "", slots: int = 0, binds: bool = False
) -> dict[str, str]:
    """Open MPI 5. With `binds`, ranks are bound as it likes."""
    hosts = _hosts("PRTE_MCA_prte", hostfile, slots)
    binding = {} if binds else {"PRTE_MCA_hwloc_default_binding_policy": "none"}
    return {"PRTE_MCA_plm_ssh_agent": agent, **_counted(PRRTE, daemons), **binding, **hosts}


def mpich(agent: str, *, hostfile: str = "") -> dict[str, str]:
    """MPICH's Hydra: as rsh, for to ssh it gives options."""
    hosts = {"HYDRA_HOST_FILE": hostfile} if hostfile else {}
    return {"HYDRA_LAUNCHER": "rsh", "HYDRA_LAUNCHER_EXEC": agent, **hosts}


def intel(agent: str, *, hostfile: str = "", slots: int = 0, binds: bool = False) -> dict[str, str]:
    """
    Intel MPI's Hydra. With `binds`, ranks are bound as it likes.

    From some number of hosts on it would have workers start others; 0 is no such tree.
    """
    hosts = {"I_MPI_HYDRA_HOST_FILE": hostfile, "I_MPI_PERHOST": str(slots)} if hostfile else {}
    binding = {} if binds else {"I_MPI_PIN": "0"}
    return {
        "I_MPI_HYDRA_BOOTSTRAP": "rsh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": agent,
        "I_MPI_HYDRA_BRANCH_COUNT": "0",
        **binding,
        **hosts,
    }


def _hosts(prefix: str, hostfile: str, slots: int) -> dict[str, str]:
    names = f"{prefix}_default_hostfile", f"{prefix}_set_default_slots"
    return dict(zip(names, (hostfile, str(slots)), strict=True)) if hostfile else {}


def _counted(variables: Mapping[str, str], daemons: int) -> dict[str, str]:
    return {name: text.format(daemons=daemons) for name, text in variables.items()}
