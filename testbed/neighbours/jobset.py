"""JobSet: its manager, its CRD and its webhooks."""

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

NAME = "jobset"

_GROUP = "jobset.x-k8s.io"
_WEBHOOKS = f"mpirt-test-{NAME}"


@contextmanager
def jobset(cluster: Ground, folder: Path, *, within: Collection[str]) -> Iterator[Child]:
    """JobSet, by an administrator's kubeconfig; its webhooks concern these namespaces alone."""
    found = neighbours.ensure(NAME)
    at = webhooks.door(folder / "certificate")
    settings = folder / "jobset.json"
    settings.write_text(json.dumps(_settings(at)))
    argv: list[str | Path] = [found.program, f"--config={settings}"]
    environment = {"KUBECONFIG": str(cluster.kubectl.kubeconfig)}
    crds = objects.documents([found.manifests / f"crd/bases/{_GROUP}_jobsets.yaml"])
    hooks = objects.documents([found.manifests / "webhook/manifests.yaml"])
    ready = f"http://{at.health}/readyz"
    with (
        objects.passing(
            cluster.kubectl, _WEBHOOKS, _GROUP, crds, *webhooks.configurations(hooks, at, _WEBHOOKS, within=within)
        ),
        running(argv, folder / "jobset.log", ready, environment) as child,
    ):
        yield child


def _settings(at: Door) -> dict[str, Any]:
    return {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": at.health},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": at.address, "port": at.port, "certDir": str(at.folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
