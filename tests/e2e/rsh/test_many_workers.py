"""
More workers than a launcher's tree has room for, and than it starts at a time: each of 150 pods gets its rank.

The pods hold a container for each launcher, so that they are started once. `mpirt env` says what to set. Workers
hold nothing of mpirt: a rank runs in each of them only if the launcher pod has started every daemon.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpirt.errors import ExitCode
from testbed import ground, manifests
from testbed.ground import Ground, Namespace
from testbed.kube.shell import output
from testbed.kube.wait import until
from tests.e2e.rsh import agent, launcher, sampling
from tests.e2e.rsh.launcher import HYDRA, OPEN_MPI_4, OPEN_MPI_5, Mpi
from tests.promises import promise

# A node of Open MPI's tree has 64 children, and 128 daemons are started at a time.
_WORKERS = 150
_MPIS = (OPEN_MPI_4, OPEN_MPI_5, HYDRA)
_ENDS_WITHIN = 300

# A FIFO of this machine that all workers have: each rank says where it is, and ends when it reads a line.
_GATE = Path("/gate/fifo")
_RANK = ("sh", "-c", f"hostname; read -r line < {_GATE}")

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
    gate: Path

    def argv(self, mpi: Mpi, variables: str, *command: str) -> list[str]:
        """What starts a command from the launcher of that image; `variables` are lines for a shell."""
        settings = [
            *(f"{name}={value}" for name, value in mpi.variables.items()),
            f"MPIRT_CONTAINER={mpi.image}",
            # Beside tests of the API server, so many pods keep it from answering for more than a minute.
            f"MPIRT_CONNECT_TIMEOUT={_ENDS_WITHIN}",
        ]
        words = ["env", *settings, "sh", "-c", f'{variables}\nexec "$@"', "sh", *mpi.command, *command]
        return self.namespace.kubectl.argv("exec", mpi.image, "--", *words)

    @contextmanager
    def running(self, mpi: Mpi, variables: str) -> Iterator[Running]:
        """A rank for each worker."""
        said = Said(*(self.namespace.folder / f"{mpi.image}-{stream}" for stream in ("stdout", "stderr")))
        gate = os.open(self.gate, os.O_RDWR)
        argv = self.argv(mpi, variables, "-n", str(_WORKERS), *_RANK)
        with said.stdout.open("wb") as stdout, said.stderr.open("wb") as stderr:
            process = subprocess.Popen(argv, stdout=stdout, stderr=stderr)
        try:
            yield Running(process, said, gate)
        finally:
            process.kill()
            process.wait()
            os.close(gate)


@dataclass(frozen=True)
class Said:
    """The files with what a program has written."""

    stdout: Path
    stderr: Path

    def hosts(self) -> list[str]:
        return sorted(self.stdout.read_text().split())


@dataclass(frozen=True)
class Running:
    """Ranks that wait at the gate."""

    process: subprocess.Popen[bytes]
    said: Said
    gate: int

    def wait_for_all(self) -> None:
        until(
            lambda: len(self.said.hosts()) >= _WORKERS or self.process.poll() is not None,
            within=_ENDS_WITHIN,
            what="all ranks",
            instead=self.said.hosts,
        )
        assert self.process.poll() is None, self.said.stderr.read_text()

    def end(self) -> int:
        """Let all ranks go. Returns the launcher's exit code."""
        os.write(self.gate, b"\n" * _WORKERS)
        return self.process.wait(_ENDS_WITHIN)


@pytest.fixture(scope="module")
def many(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManyWorkers]:
    with ground.passing_namespace(cluster, tmp_path_factory.mktemp("many")) as namespace:
        gate = namespace.folder / _GATE.parent.name / _GATE.name
        gate.parent.mkdir()
        os.mkfifo(gate)
        seen = {"volumeMounts": [{"name": "gate", "mountPath": str(_GATE.parent)}]}
        containers = [
            {**manifests.idle_container(cluster.image(mpi.image)), **seen, "name": mpi.image} for mpi in _MPIS
        ]
        hosts = namespace.workers(
            _WORKERS,
            OPEN_MPI_4.image,
            within=300,
            containers=containers,
            volumes=[{"name": "gate", "hostPath": {"path": str(gate.parent)}}],
            terminationGracePeriodSeconds=0,
        )
        for mpi in _MPIS:
            launcher.start(namespace, mpi.image, workers=hosts, host_line=mpi.host_line, name=mpi.image)
        yield ManyWorkers(namespace, hosts, gate)


@pytest.mark.parametrize(
    ("mpi", "name"),
    [(OPEN_MPI_4, "openmpi4"), (OPEN_MPI_5, "openmpi5"), (HYDRA, "mpich")],
    ids=["Open MPI 4", "Open MPI 5", "Hydra"],
)
def test_a_rank_starts_on_every_worker_with_the_variables_of_mpirt_env(
    many: ManyWorkers, mpi: Mpi, name: str
) -> None:
    began = time.monotonic()
    with (
        sampling.looking(many.namespace, mpi.image) as seen,
        many.running(mpi, printed_by_mpirt_env(name)) as running,
    ):
        running.wait_for_all()
        seconds = time.monotonic() - began
        # A session for each worker, and one watch; one more for a moment, where something is dialled anew.
        until(
            lambda: sampling.connections(many.namespace, mpi.image) == _WORKERS + 1,
            within=60,
            what="a connection for each worker and a watch",
            instead=lambda: sampling.connections(many.namespace, mpi.image),
        )
        code = running.end()

    print(f"{_WORKERS} workers, {mpi.image}: {seconds:.1f} s until the last rank, {seen}")
    assert code == 0, running.said.stderr.read_text()
    assert running.said.hosts() == sorted(many.hosts)
    assert len(seen.switchboards) == 1


@promise("With more workers than Open MPI's tree reaches, mpirt-rsh names the variables to set.", of="mpirt-rsh")
def test_open_mpi_is_refused_without_them_and_told_which(many: ManyWorkers) -> None:
    argv = many.argv(OPEN_MPI_4, "", "-n", str(_WORKERS), "hostname")

    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_ENDS_WITHIN)

    assert done.returncode == ExitCode.USAGE
    assert done.stdout == ""
    [line] = {line for line in done.stderr.splitlines() if line.startswith("mpirt-rsh: ")}
    assert "OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_MCA_orte_leave_session_attached=1" in line


def printed_by_mpirt_env(name: str) -> str:
    """Lines for a shell."""
    return output(agent.MPIRT, "env", name, "--workers", str(_WORKERS))
