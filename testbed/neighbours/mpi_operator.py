"""mpi-operator of kubeflow, without its CRD, whose place the project's own takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from testbed.ground import Namespace
from testbed.kube.kubectl import Manifest
from testbed.kube.programs import neighbours
from testbed.neighbours.programs import running
from testbed.plane.children import Child

NAME = "mpi-operator"

# It always listens there: only one runs on a machine.
_HEALTH = "http://127.0.0.1:8080/healthz"
# By default it makes five requests a second.
FAST = ("-kube-api-qps=100", "-kube-api-burst=200")


@contextmanager
def mpi_operator(
    namespace: Namespace, folder: Path, *, kubeconfig: Path | None = None, options: Sequence[str] = FAST
) -> Iterator[Child]:
    """
    The operator, for the jobs of one namespace; it is gone after the block, and its jobs are not.

    It acts by an administrator's kubeconfig unless it gets another one.
    """
    found = neighbours.ensure(NAME)
    argv: list[str | Path] = [
        found.program,
        f"-kubeConfig={kubeconfig or namespace.ground.kubectl.kubeconfig}",
        f"-namespace={namespace.name}",
        f"-lock-namespace={namespace.name}",
        *options,
        "-alsologtostderr",
    ]
    with running(argv, folder / "mpi-operator.log", _HEALTH) as child:
        yield child


def crd() -> Manifest:
    """Return its CRD, as it is published: v2beta1 alone, and nothing of what only this project has."""
    file = neighbours.ensure(NAME).manifests / "kubeflow.org_mpijobs.yaml"
    found: Manifest = yaml.safe_load(file.read_text(encoding="utf-8"))
    return found
