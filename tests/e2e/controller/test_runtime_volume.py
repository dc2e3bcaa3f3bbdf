"""The runtime image as a volume of the launcher's pod, where the nodes can mount images."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.ground import Ground
from testbed.mpijobs import submit
from tests.e2e.controller import deployed
from tests.e2e.controller.deployed import Deployed, job_name
from tests.promises import promise

_FIRST_MINOR = 35


@pytest.fixture(scope="module")
def seeing(cluster: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A controller that may list nodes."""
    with deployed.passing(cluster, tmp_path_factory.mktemp("seeing"), sees_nodes=True) as installed:
        yield installed


@promise("Nodes from Kubernetes 1.35 on mount the runtime image in launchers; nothing is copied.", of="MPIJob")
@pytest.mark.oldest
def test_the_runtime_image_is_mounted_where_all_nodes_can_and_copied_elsewhere(seeing: Deployed) -> None:
    kubectl = seeing.namespace.kubectl
    versions = {node["status"]["nodeInfo"]["kubeletVersion"] for node in kubectl.get("nodes")}
    can = all(int(version.split(".")[1]) >= _FIRST_MINOR for version in versions)
    job = submit(
        seeing.namespace,
        job_name("mounted"),
        "openmpi4",
        ("mpirun", "--allow-run-as-root", "-n", "2", "--map-by", "node", "hostname"),
    )

    job.wait_for_end()

    [launcher] = job.pods("launcher")
    [volume] = [each for each in launcher["spec"]["volumes"] if each["name"] == "mpirt-runtime"]
    assert sorted(job.log()) == [job.worker(0), job.worker(1)], job.surroundings()
    assert ("image" in volume, "emptyDir" in volume) == (can, not can)
    copiers = [each["name"] for each in launcher["spec"].get("initContainers", ()) if "/opt/mpirt" in each["args"]]
    assert bool(copiers) is not can
    assert (launcher["metadata"]["annotations"]["mpirt.dev/runtime"] == "image volume") is can
