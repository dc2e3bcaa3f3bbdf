"""
More workers than a launcher's tree has room for: each of seventy pods gets its rank.

The pods hold a container for each launcher, so that they are started once. `mpirt env` says what to set.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mpirt.errors import ExitCode
from tests.e2e import ground, manifests
from tests.e2e.ground import Ground, Namespace
from tests.e2e.rsh import agent, launcher
from tests.e2e.rsh.test_launchers import HYDRA, OPEN_MPI_4, Mpi
from tests.kube.shell import output

# A node of Open MPI's tree has 64 children.
_WORKERS = 70

# So many pods keep the nodes busy for a minute.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Crowd:
    """The workers, with a container of its own for each image, and a launcher pod of each image."""

    namespace: Namespace
    hosts: list[str]

    def run(self, mpi: Mpi, variables: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Start a command from the launcher of that image; `variables` are lines for a shell."""
        settings = [*(f"{name}={value}" for name, value in mpi.variables.items()), f"MPIRT_CONTAINER={mpi.image}"]
        words = ["env", *settings, "sh", "-c", f'{variables}\nexec "$@"', "sh", *mpi.command, *command]
        return self.namespace.kubectl("exec", mpi.image, "--", *words, check=False, timeout=200)


@pytest.fixture(scope="module")
def crowd(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    with ground.passing_namespace(cluster, tmp_path_factory.mktemp("crowd")) as namespace:
        containers = [
            {**manifests.idle_container(cluster.image(mpi.image)), "name": mpi.image}
            for mpi in (OPEN_MPI_4, HYDRA)
        ]
        hosts = namespace.workers(_WORKERS, OPEN_MPI_4.image, containers=containers)
        for mpi in (OPEN_MPI_4, HYDRA):
            launcher.start(namespace, mpi.image, workers=hosts, host_line=mpi.host_line, name=mpi.image)
        yield Crowd(namespace, hosts)
        # The namespace controller takes a minute and more for a namespace that still holds so many.
        namespace.kubectl("delete", "statefulsets,pods", "--all", "--grace-period=1", timeout=300)


def test_open_mpi_reaches_all_with_the_variables_that_it_is_told_to_set(crowd: Crowd) -> None:
    done = crowd.run(OPEN_MPI_4, printed_by_mpirt_env("openmpi4"), "-n", str(_WORKERS), "hostname")

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(crowd.hosts)


def test_open_mpi_is_refused_without_them_and_told_which(crowd: Crowd) -> None:
    done = crowd.run(OPEN_MPI_4, "", "-n", str(_WORKERS), "hostname")

    assert done.returncode == ExitCode.USAGE
    assert done.stdout == ""
    [line] = {line for line in done.stderr.splitlines() if line.startswith("mpirt-rsh: ")}
    assert "OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_MCA_orte_leave_session_attached=1" in line


def test_hydra_reaches_all(crowd: Crowd) -> None:
    done = crowd.run(HYDRA, printed_by_mpirt_env("mpich"), "-n", str(_WORKERS), "hostname")

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(crowd.hosts)


def printed_by_mpirt_env(name: str) -> str:
    """Lines for a shell."""
    return output(agent.RSH.with_name("mpirt"), "env", name, "--workers", str(_WORKERS))
