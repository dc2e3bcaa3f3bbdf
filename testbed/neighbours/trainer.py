"""Kubeflow Trainer v2: the manager of TrainJobs, its CRDs and its webhooks. It needs JobSet beside it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.ground import Ground
from testbed.kube.programs import neighbours
from testbed.neighbours import objects, webhooks
from testbed.neighbours.programs import running
from testbed.neighbours.webhooks import Door
from testbed.plane.children import Child

NAME = "trainer"

_GROUP = "trainer.kubeflow.org"
_WEBHOOKS = f"mpirt-test-{NAME}"
# Below the folder for temporary files: it has no setting for it.
_CERTIFICATE = "k8s-webhook-server/serving-certs"


@contextmanager
def trainer(cluster: Ground, folder: Path, *, within: Collection[str]) -> Iterator[Child]:
    """
    Trainer, by an administrator's kubeconfig; its webhooks concern these namespaces alone.

    That of ClusterTrainingRuntimes, which have no namespace, concerns all of them.
    """
    found = neighbours.ensure(NAME)
    at = webhooks.door(folder / _CERTIFICATE)
    settings = folder / "trainer.json"
    settings.write_text(json.dumps(_settings(at)))
    argv: list[str | Path] = [found.program, f"--config={settings}"]
    environment = {"KUBECONFIG": str(cluster.kubectl.kubeconfig), "TMPDIR": str(folder)}
    crds = objects.documents(sorted((found.manifests / "crds").glob(f"{_GROUP}_*.yaml")))
    hooks = objects.documents([found.manifests / "webhook/manifests.yaml"])
    ready = f"http://{at.health}/readyz"
    with (
        objects.passing(
            cluster.kubectl, _WEBHOOKS, _GROUP, crds, *webhooks.configurations(hooks, at, _WEBHOOKS, within=within)
        ),
        running(argv, folder / "trainer.log", ready, environment) as child,
    ):
        yield child


def _settings(at: Door) -> dict[str, Any]:
    return {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": at.health},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": at.address, "port": at.port},
        "certManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
    }
