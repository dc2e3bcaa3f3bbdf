"""A controller that adds labels to pod templates disturbs no job that an earlier version has started."""

from __future__ import annotations

import pytest

from tests.unit.controller import pods
from tests.unit.controller.jobs import container, template
from tests.unit.controller.started import started

NEW = {"group-name", "mpi-job-name", "mpi-job-role", "training.kubeflow.org/replica-index"}


@pytest.mark.parametrize("mpi", ["OpenMPI", "MPICH"])
def test_a_job_of_an_earlier_version_is_left_as_it_is(mpi: str) -> None:
    """Its templates lack the labels and the search domain of this version, and its workers the missing probe."""
    probe = {"tcpSocket": {"port": 2222}}
    worker = template(container("worker", args=["/usr/sbin/sshd", "-De"], readinessProbe=probe))
    world = started(worker=worker, mpiImplementation=mpi, runLauncherAsWorker=True)
    for kind in ("StatefulSet", "Job"):
        made = world.get(kind)["spec"]["template"]
        made["metadata"]["labels"] = {
            name: text for name, text in made["metadata"]["labels"].items() if name not in NEW
        }
        made["spec"].pop("dnsConfig", None)
    [main] = world.get("StatefulSet")["spec"]["template"]["spec"]["containers"]
    main["readinessProbe"] = probe

    assert world.settle() == []
    world.workers_are(pods.worker(0), pods.worker(1))
    assert world.later(600) == []
