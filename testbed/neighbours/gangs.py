"""The scheduler of kubernetes-sigs/scheduler-plugins with its coscheduling plugin, beside the cluster's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.ground import Ground
from testbed.kube.programs import neighbours
from testbed.neighbours import objects, webhooks
from testbed.neighbours.programs import running
from testbed.plane.children import Child

SCHEDULER = "mpirt-test-gangs"
"""The name by which pods ask for it."""

_NAME = "scheduler-plugins"
# How long a member that has a place waits for the others, before all of them give theirs up.
_WAITS_SECONDS = 3


@contextmanager
def coscheduling(cluster: Ground, folder: Path) -> Iterator[Child]:
    """The scheduler, and the CRD of its groups; the CRD stays, because others may be using it."""
    found = neighbours.ensure(_NAME)
    at = webhooks.door(folder / "certificate")
    objects.apply(cluster.kubectl, objects.documents([found.manifests / "scheduling.x-k8s.io_podgroups.yaml"]))
    settings = folder / "scheduler.json"
    settings.write_text(json.dumps(_settings(cluster.kubectl.kubeconfig)))
    argv: list[str | Path] = [
        found.program,
        f"--config={settings}",
        f"--bind-address={at.address}",
        f"--secure-port={at.port}",
        f"--tls-cert-file={at.folder}/tls.crt",
        f"--tls-private-key-file={at.folder}/tls.key",
        "--authentication-skip-lookup",
        # The plugin does not notice that pods have ended: it looks again when this time is over. That is tested
        # every 30 s.
        "--pod-max-in-unschedulable-pods-duration=1s",
    ]
    health = f"https://{at.address}:{at.port}/healthz"
    with running(argv, folder / "scheduler.log", health, authority=at.folder / "tls.crt") as child:
        yield child


def _settings(kubeconfig: Path) -> dict[str, Any]:
    plugins = {
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        # The members of a group follow each other.
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    }
    waits = {"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": _WAITS_SECONDS}}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "profiles": [{"schedulerName": SCHEDULER, "plugins": plugins, "pluginConfig": [waits]}],
    }
