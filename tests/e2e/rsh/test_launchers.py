"""
Every launcher starts its ranks through mpirt-rsh, from a pod with the least rights, in workers without mpirt.

Host names are asserted, not only exit codes: a launcher that silently runs everything on itself exits 0 too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from testbed.ground import Namespace
from testbed.kube.wait import until
from tests.e2e import horovod
from tests.e2e.rsh import launcher
from tests.e2e.rsh.launcher import (
    HYDRA,
    INTEL,
    MPICH_5,
    MPIRUN,
    OPEN_MPI_4,
    OPEN_MPI_5,
    OPEN_MPI_5_0_11,
    Mpi,
    lines,
    run,
)
from tests.promises import promise

Workers = Callable[[int, str], list[str]]


LARGE = pytest.mark.full("its image has two hundred megabytes that no other test needs")
MPIS = [
    pytest.param(OPEN_MPI_4, id="Open MPI 4"),
    pytest.param(OPEN_MPI_5, id="Open MPI 5"),
    pytest.param(HYDRA, id="Hydra"),
    pytest.param(INTEL, id="Intel MPI", marks=LARGE),
    pytest.param(MPICH_5, id="MPICH 5", marks=LARGE),
    pytest.param(OPEN_MPI_5_0_11, id="Open MPI 5.0.11", marks=LARGE),
]


@promise("Open MPI 4, Open MPI 5, MPICH and Intel MPI start a rank on every worker by mpirt-rsh.", of="mpirt-rsh")
@promise("mpirun and mpiexec end with the code of a rank that has failed.", of="mpirt-rsh")
@pytest.mark.oldest
@pytest.mark.parametrize("mpi", MPIS)
def test_a_rank_starts_on_every_worker_and_its_code_comes_back(
    namespace: Namespace, workers: Workers, mpi: Mpi
) -> None:
    hosts = workers(3, mpi.image)
    launcher.start(namespace, mpi.image, workers=hosts, host_line=mpi.host_line)
    assert len(namespace.nodes_of(hosts)) == 2

    assert lines(run(namespace, mpi.variables, *mpi.command, "-n", "3", "hostname")) == hosts
    assert run(namespace, mpi.variables, *mpi.command, "-n", "3", *mpi.failing).returncode == 7


@promise("A launcher may start before its workers: with MPIRT_WAIT its ranks start as soon as these are Ready.",
         of="mpirt-rsh")  # fmt: skip
@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.sample(1)
def test_a_launcher_that_is_earlier_than_its_workers_waits_for_them(
    namespace: Namespace, workers: Workers, mpi: Mpi
) -> None:
    hosts = ["worker-0", "worker-1"]
    launcher.start(namespace, mpi.image, workers=hosts, host_line=mpi.host_line)
    begins = ("sh", "-c", 'touch /tmp/begun && exec "$@"', "sh")
    settings = {**mpi.variables, "MPIRT_WAIT": "1h"}
    with ThreadPoolExecutor() as pool:
        done = pool.submit(run, namespace, settings, *begins, *mpi.command, "-n", "2", "hostname")
        until(
            lambda: run(namespace, {}, "test", "-e", "/tmp/begun").returncode == 0, within=60, what="the launcher"
        )
        workers(2, mpi.image)

        assert lines(done.result()) == hosts


@promise("A launcher whose Role has only get on pods can start ranks.", of="mpirt-rsh")
def test_the_right_to_get_pods_is_enough(namespace: Namespace, workers: Workers) -> None:
    hosts = workers(2, "openmpi4")
    launcher.start(namespace, "openmpi4", workers=hosts, pods=["get"])

    assert lines(run(namespace, OPEN_MPI_4.variables, *MPIRUN, "-n", "2", "hostname")) == hosts


@promise("horovodrun starts ranks by kubexec.sh or by a shim named ssh, without a real ssh.", of="mpirt-rsh")
@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"OMPI_MCA_plm_rsh_agent": launcher.KUBEXEC}, id="by the path of kubexec.sh"),
        pytest.param({"PATH": f"{launcher.SHIMS}:/usr/local/bin:/usr/bin:/bin"}, id="by a shim named ssh"),
    ],
)
@pytest.mark.sample(1)
def test_horovodrun_reduces_over_two_workers(
    namespace: Namespace, workers: Workers, variables: Mapping[str, str]
) -> None:
    hosts = workers(2, "horovod")
    launcher.start(namespace, "horovod", workers=hosts)

    done = run(namespace, variables, *horovod.COMMAND, horovod.ALLREDUCE)

    assert len(namespace.nodes_of(hosts)) == 2
    assert horovod.results(lines(done)) == horovod.REDUCED
