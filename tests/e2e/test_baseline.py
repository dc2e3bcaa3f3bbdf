"""
Real launchers over plain `kubectl exec`: the baseline that mpirt-rsh is compared with.

Host names are asserted, not only exit codes: a launcher that silently runs everything on itself exits 0 too.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from testbed.ground import Namespace
from tests.e2e import horovod, kubectl_agent

Workers = Callable[[int, str], list[str]]

# With the list, orted's check that its agent exists is met by the workers' own sh.
_AGENT_OR_SH = f"{kubectl_agent.AGENT} : sh"


_OPEN_MPI = ("mpirun", "--allow-run-as-root", "-n", "3", "hostname")
LAUNCHERS = {
    "openmpi4": (
        {"OMPI_MCA_plm_rsh_agent": _AGENT_OR_SH, "OMPI_MCA_orte_default_hostfile": kubectl_agent.HOSTFILE},
        _OPEN_MPI,
    ),
    "openmpi5": (
        {"PRTE_MCA_plm_ssh_agent": _AGENT_OR_SH, "PRTE_MCA_prte_default_hostfile": kubectl_agent.HOSTFILE},
        _OPEN_MPI,
    ),
    "mpich": (
        {"HYDRA_LAUNCHER": "rsh", "HYDRA_LAUNCHER_EXEC": kubectl_agent.AGENT},
        ("mpiexec.hydra", "-f", kubectl_agent.HOSTFILE, "-n", "3", "hostname"),
    ),
}
"""By the image: the variables, and the command."""


@pytest.mark.parametrize("image", LAUNCHERS)
def test_a_launcher_starts_a_rank_on_every_worker(namespace: Namespace, workers: Workers, image: str) -> None:
    variables, command = LAUNCHERS[image]
    hosts = workers(3, image)
    kubectl_agent.launcher(namespace, image, hosts=hosts, host_line="{}:1" if image == "mpich" else "{} slots=1")

    lines = run_in_launcher(namespace, variables, *command)

    assert len(namespace.nodes_of(hosts)) == 2
    assert lines == ["worker-0", "worker-1", "worker-2"]


def test_horovodrun_reduces_over_two_workers(namespace: Namespace, workers: Workers) -> None:
    hosts = workers(2, "horovod")
    kubectl_agent.launcher(namespace, "horovod", hosts=hosts)
    # The one agent that horovodrun knows besides ssh, by exactly this path.
    variables = {"OMPI_MCA_plm_rsh_agent": kubectl_agent.AGENT}

    lines = run_in_launcher(namespace, variables, *horovod.COMMAND, horovod.ALLREDUCE)

    assert len(namespace.nodes_of(hosts)) == 2
    assert horovod.results(lines) == horovod.REDUCED


def run_in_launcher(namespace: Namespace, variables: dict[str, str], *command: str) -> list[str]:
    """The sorted lines that a launcher's command printed."""
    settings = [f"{name}={value}" for name, value in variables.items()]
    return sorted(namespace.kubectl.execute("launcher", "env", *settings, *command, timeout=120).splitlines())
