"""Every example that mpi-operator publishes is read as it is; its workers wait for commands and become Ready."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.manifests.config_map import hostfile
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.sshd import IDLE, PROBES
from mpirt.controller.manifests.workers import stateful_set
from tests.support.mpi_operator_examples import EXAMPLES, example
from tests.unit.controller.jobs import SETTINGS, UID, Body

_PLACE = "spec.mpiReplicaSpecs.Worker.template.spec.containers, mpi-worker"
SSHD = f"{_PLACE}: sshd is not started: nothing connects by ssh; the container waits instead"
PROBE = f"{_PLACE}: readinessProbe of port 2222 is removed: only sshd would answer it, and sshd is not started"

NOTICES = {
    "pi/pi.yaml": (SSHD,),
    "pi/pi-intel.yaml": (SSHD, PROBE),
    "pi/pi-mpich.yaml": (SSHD, PROBE),
    "horovod/tensorflow-mnist.yaml": (),
    "tensorflow-benchmarks/tensorflow-benchmarks.yaml": (),
}


def stored(path: str) -> Body:
    """An example as the API server has it."""
    job = example(path)
    job["metadata"] |= {"namespace": "ml", "uid": UID, "generation": 1}
    return job


def worker(path: str) -> dict[str, Any]:
    made = stateful_set(MPI_JOB.parse(stored(path)), SETTINGS)
    [container] = made["spec"]["template"]["spec"]["containers"]
    return dict(container)


def launcher(path: str) -> dict[str, Any]:
    made = launcher_job(MPI_JOB.parse(stored(path)), SETTINGS)
    [container] = made["spec"]["template"]["spec"]["containers"]
    return dict(container)


def asked(path: str, role: str) -> Body:
    job = stored(path)
    [container] = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"]
    return dict(container)


def test_all_of_them_are_here() -> None:
    assert EXAMPLES.keys() == NOTICES.keys()


@pytest.mark.parametrize("path", EXAMPLES)
class TestAnExample:
    def test_is_told_what_is_replaced(self, path: str) -> None:
        assert MPI_JOB.parse(stored(path)).notices == NOTICES[path]

    def test_its_workers_wait_and_start_no_sshd(self, path: str) -> None:
        made = worker(path)

        assert (made["command"], made["args"]) == (list(IDLE), [])

    def test_no_probe_of_its_workers_asks_for_sshd(self, path: str) -> None:
        assert [probe for probe in PROBES if probe in worker(path)] == []

    def test_the_rest_of_its_workers_is_as_it_was_written(self, path: str) -> None:
        made, wrote = worker(path), asked(path, "Worker")

        replaced = {"command", "args", *PROBES}
        assert {field: made[field] for field in wrote if field not in replaced} == {
            field: value for field, value in wrote.items() if field not in replaced
        }

    def test_its_launcher_runs_what_was_written(self, path: str) -> None:
        made, wrote = launcher(path), asked(path, "Launcher")

        if "command" in wrote:
            wrote = {**wrote, "command": ["/opt/mpirt/bin/mpirt-init", *wrote["command"]]}
        assert {field: made[field] for field in wrote} == wrote

    def test_its_hostfile_names_both_workers(self, path: str) -> None:
        job = MPI_JOB.parse(stored(path))

        assert [line.split()[0].partition(":")[0] for line in hostfile(job).splitlines()] == [
            f"{job.key.name}-worker-{number}" for number in (0, 1)
        ]
