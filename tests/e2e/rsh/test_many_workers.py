"""
More workers than a launcher's tree has room for, and than it starts at a time: each of 150 pods gets its rank.

The pods hold a container for each launcher, so that they are started once. `mpirt env` says what to set. Workers
hold nothing of mpirt: a rank runs in each of them only if the launcher pod has started every daemon.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from mpirt.errors import ExitCode
from tests.e2e.rsh import agent, launcher, sampling
from tests.e2e.rsh.mpis import HYDRA, OPEN_MPI_4, OPEN_MPI_5, Mpi
from tests.kube.shell import output
from tests.promises import promise
from tests.support import ground, manifests
from tests.support.forms import Form
from tests.support.ground import Ground, Namespace

# A node of Open MPI's tree has 64 children, and 128 daemons are started at a time.
_WORKERS = 150
_MPIS = (OPEN_MPI_4, OPEN_MPI_5, HYDRA)

# So many pods keep the nodes busy for minutes, also when they go.
pytestmark = [
    pytest.mark.full("ranks of each MPI in test_launchers, the variables in tests/unit/cli"),
    pytest.mark.alone,
    pytest.mark.last,
]


@dataclass(frozen=True)
class ManyWorkers:
    """The workers, with a container of its own for each image, and a launcher pod of each image."""

    namespace: Namespace
    hosts: list[str]

    def run(self, mpi: Mpi, variables: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Start a command from the launcher of that image; `variables` are lines for a shell."""
        settings = [*(f"{name}={value}" for name, value in mpi.variables.items()), f"MPIRT_CONTAINER={mpi.image}"]
        words = ["env", *settings, "sh", "-c", f'{variables}\nexec "$@"', "sh", *mpi.command, *command]
        return self.namespace.kubectl("exec", mpi.image, "--", *words, check=False, timeout=200)


@pytest.fixture(scope="module")
def many(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManyWorkers]:
    with ground.passing_namespace(cluster, tmp_path_factory.mktemp("many")) as namespace:
        containers = [{**manifests.idle_container(cluster.image(mpi.image)), "name": mpi.image} for mpi in _MPIS]
        hosts = namespace.workers(
            _WORKERS, OPEN_MPI_4.image, within=300, containers=containers, terminationGracePeriodSeconds=0
        )
        for mpi in _MPIS:
            launcher.start(namespace, mpi.image, workers=hosts, host_line=mpi.host_line, name=mpi.image)
        yield ManyWorkers(namespace, hosts)


@pytest.mark.parametrize(
    ("mpi", "name"),
    [(OPEN_MPI_4, "openmpi4"), (OPEN_MPI_5, "openmpi5"), (HYDRA, "mpich")],
    ids=["Open MPI 4", "Open MPI 5", "Hydra"],
)
def test_a_rank_starts_on_every_worker_with_the_variables_of_mpirt_env(
    many: ManyWorkers, form: Form, mpi: Mpi, name: str
) -> None:
    # All daemons are there as long as the ranks run.
    command = ("-n", str(_WORKERS), "sh", "-c", "hostname; sleep 3")
    with sampling.looking(many.namespace, mpi.image) as seen:
        began = time.monotonic()
        done = many.run(mpi, printed_by_mpirt_env(name), *command)
        seconds = time.monotonic() - began

    print(f"{_WORKERS} workers, {mpi.image}: {seconds:.1f} s, {seen}")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(many.hosts)
    if form is Form.SWITCHBOARD:
        assert len(seen.switchboards) == 1
        # A session for each worker, and one watch; one more for a moment, where something is dialled anew.
        all_there = {count: times for count, times in seen.connections.items() if count > _WORKERS}
        assert all_there, seen
        assert max(all_there, key=lambda count: all_there[count]) == _WORKERS + 1


@promise("With more workers than Open MPI's tree reaches, mpirt-rsh names the variables to set.", of="mpirt-rsh")
def test_open_mpi_is_refused_without_them_and_told_which(many: ManyWorkers) -> None:
    done = many.run(OPEN_MPI_4, "", "-n", str(_WORKERS), "hostname")

    assert done.returncode == ExitCode.USAGE
    assert done.stdout == ""
    [line] = {line for line in done.stderr.splitlines() if line.startswith("mpirt-rsh: ")}
    assert "OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_MCA_orte_leave_session_attached=1" in line


def printed_by_mpirt_env(name: str) -> str:
    """Lines for a shell."""
    return output(agent.MPIRT, "env", name, "--workers", str(_WORKERS))
