"""What stands in /etc/mpi of a job's pods."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.manifests.config_map import config_map
from tests.unit.controller.jobs import mpi_job, parsed

SELECTOR = (
    "training.kubeflow.org/operator-name=mpi-operator,training.kubeflow.org/job-name=train,"
    "training.kubeflow.org/job-role=worker"
)
DISCOVER = f"mpirt-discover --selector {SELECTOR}"
WORKS = {"runLauncherAsWorker": True}


def data(**job: object) -> dict[str, str]:
    found: dict[str, str] = config_map(parsed(**job), {})["data"]
    return found


def without_workers(**job: Any) -> dict[str, str]:
    body = mpi_job(**job)
    del body["spec"]["mpiReplicaSpecs"]["Worker"]
    found: dict[str, str] = config_map(MPI_JOB.parse(body), {})["data"]
    return found


class TestTheHostfile:
    @pytest.mark.parametrize(
        ("mpi", "slots", "text"),
        [
            pytest.param("OpenMPI", 2, "train-worker-0 slots=2\ntrain-worker-1 slots=2\n", id="Open MPI"),
            pytest.param("Intel", 2, "train-worker-0:2\ntrain-worker-1:2\n", id="Intel MPI"),
            pytest.param("MPICH", 2, "train-worker-0:2\ntrain-worker-1:2\n", id="MPICH"),
            pytest.param(
                "OpenMPI", 0, "train-worker-0 slots=0\ntrain-worker-1 slots=0\n", id="Open MPI, no slots"
            ),
            pytest.param("MPICH", 0, "train-worker-0:0\ntrain-worker-1:0\n", id="MPICH, no slots"),
        ],
    )
    def test_is_in_the_dialect_of_the_mpi(self, mpi: str, slots: int, text: str) -> None:
        assert data(mpiImplementation=mpi, slotsPerWorker=slots)["hostfile"] == text

    def test_begins_with_the_launcher_if_it_works_too(self) -> None:
        assert data(runLauncherAsWorker=True)["hostfile"].splitlines()[0] == "train-launcher slots=1"

    def test_of_a_job_without_workers_is_empty_or_names_the_launcher(self) -> None:
        assert without_workers()["hostfile"] == ""
        assert (
            without_workers(runLauncherAsWorker=True, slotsPerWorker=4)["hostfile"] == "train-launcher slots=4\n"
        )


def test_the_number_of_workers_to_wait_for_is_no_secret_of_a_template() -> None:
    assert data()["workers-needed"] == "2"
    assert data(elastic={"minReplicas": 1})["workers-needed"] == "1"


class TestTheScripts:
    """Run unchanged, with programs on PATH that print their arguments."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> str:
        for name in ("mpirt-rsh", "mpirt-discover"):
            program = tmp_path / name
            program.write_text(f'#!/bin/sh\necho {name} "$@"\nexit ${{CODE:-0}}\n')
            program.chmod(0o755)
        return f"{tmp_path}:{os.defpath}"

    def run(self, script: str, path: str, *words: str, code: int = 0) -> tuple[int, str]:
        done = subprocess.run(
            ["/bin/sh", "-c", script, "script", *words],
            env={"PATH": path, "CODE": str(code)}, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stdout

    def test_kubexec_hands_on_host_and_command(self, path: str) -> None:
        done = self.run(data()["kubexec.sh"], path, "train-worker-0", "echo 'a b'", code=7)

        assert done == (7, "mpirt-rsh train-worker-0 echo 'a b'\n")

    @pytest.mark.parametrize(
        ("job", "code", "said"),
        [
            pytest.param({"slotsPerWorker": 4}, 0, f"{DISCOVER} --slots 4\n", id="asks for this job"),
            pytest.param(WORKS, 0, f"train-launcher:1\n{DISCOVER} --slots 1\n", id="names the launcher first"),
            pytest.param(WORKS, 244, "", id="says nothing if the workers are not known"),
            pytest.param(
                {**WORKS, "slotsPerWorker": 0}, 0, f"train-launcher\n{DISCOVER}\n", id="leaves the slots"
            ),
        ],
    )
    def test_discovery(self, path: str, job: dict[str, Any], code: int, said: str) -> None:
        assert self.run(data(**job)["discover_hosts.sh"], path, code=code) == (code, said)

    @pytest.mark.parametrize(("works", "said"), [(True, "train-launcher:1\n"), (False, "")])
    def test_without_workers_nothing_is_listed(self, path: str, said: str, *, works: bool) -> None:
        done = self.run(without_workers(runLauncherAsWorker=works)["discover_hosts.sh"], path)

        assert done == (0, said)

    def test_the_delivered_runtime_comes_first(self) -> None:
        assert "program=/opt/mpirt/bin/mpirt-rsh\n" in data()["kubexec.sh"]
        assert "program=/opt/mpirt/bin/mpirt-discover\n" in data()["discover_hosts.sh"]
