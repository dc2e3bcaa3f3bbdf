"""What the demo reads, and what it has in common with the files that a person uses."""

from __future__ import annotations

from typing import Any

import pytest

from demo import program
from demo.controller import refuse_beside
from demo.job import FILE
from demo.place import Images, named_images
from testbed.kube.errors import ClusterError
from tests.unit.layers import PROJECT


@pytest.mark.parametrize(
    ("environment", "images"),
    [
        pytest.param(
            {"REGISTRY": "reg/mpirt/"},
            Images("reg/mpirt/controller:demo", "reg/mpirt/runtime:demo", "reg/mpirt/pi:demo"),
            id="by a registry",
        ),
        pytest.param(
            {"REGISTRY": "reg", "PI_IMAGE": "elsewhere/pi@sha256:0"},
            Images("reg/controller:demo", "reg/runtime:demo", "elsewhere/pi@sha256:0"),
            id="one by a name of its own, which wins",
        ),
        pytest.param({"PI_IMAGE": "a", "RUNTIME_IMAGE": "b"}, None, id="two of three are not enough"),
    ],
)
def test_images_are_named(environment: dict[str, str], images: Images | None) -> None:
    assert named_images(environment) == images


def deployment(
    name: str, *, labels: dict[str, str] | None = None, replicas: int = 1, **main: Any
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "there", **({"labels": labels} if labels else {})}
    spec = {"replicas": replicas, "template": {"spec": {"containers": [main]}}}
    return {"metadata": metadata, "spec": spec}


class TestBesideOthers:
    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(deployment("mpirt-controller"), id="ours"),
            pytest.param(
                deployment("x", labels={"app.kubernetes.io/name": "mpirt-controller"}), id="ours by label"
            ),
            pytest.param(deployment("mpi-operator"), id="mpi-operator"),
            pytest.param(deployment("training-operator", args=["--leader-elect"]), id="training-operator"),
        ],
    )
    def test_a_controller_of_all_namespaces_is_in_the_way(self, other: dict[str, Any]) -> None:
        with pytest.raises(ClusterError, match="in namespace there acts on the MPIJobs of all namespaces"):
            refuse_beside([deployment("web"), other])

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(deployment("mpirt-controller", env=[{"name": "MPIRT_NAMESPACE"}]), id="by variable"),
            pytest.param(deployment("mpirt-controller", args=["--namespace=ml"]), id="by option"),
            pytest.param(deployment("mpi-operator", command=["x", "--namespace", "ml"]), id="by command"),
            pytest.param(deployment("mpi-operator", replicas=0), id="switched off"),
            pytest.param(deployment("web"), id="somebody else"),
        ],
    )
    def test_a_controller_of_other_namespaces_is_not_in_the_way(self, other: dict[str, Any]) -> None:
        refuse_beside([other])


class TestTheExample:
    DOCKERFILE = (PROJECT / "examples/pi/Dockerfile").read_text(encoding="utf-8")

    def test_the_test_clusters_image_is_compiled_as_the_dockerfiles(self) -> None:
        script = program.COMPILE.read_text(encoding="utf-8")

        assert "mpicc -O2 -o /usr/local/bin/pi /source/pi.c -lm" in self.DOCKERFILE
        assert "mpicc -O2 -o /root/pi /root/pi.c -lm" in script
        assert f"--no-install-recommends {' '.join(program.PACKAGES)}" in self.DOCKERFILE

    def test_the_example_starts_as_the_dockerfile_does(self) -> None:
        assert self.DOCKERFILE.endswith(f"USER {program.START.user}\n")
        assert f"/{program.PLACE} /{program.PLACE}\n" in self.DOCKERFILE

    def test_its_image_has_one_name_to_be_replaced(self) -> None:
        assert FILE.read_text(encoding="utf-8").count("image: mpirt-example/pi\n") == 2
