"""
A neighbour's webhooks, called where it listens: at a loopback address of its own instead of behind a Service.

Owns: its certificate, and its manifests with that address in them. They concern the given namespaces alone, so
that other tests on the same cluster never wait for it.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.kube.kubectl import Manifest
from testbed.kube.shell import run
from testbed.plane import place


@dataclass(frozen=True)
class Door:
    """Where a neighbour listens, and the certificate that its webhook server shows."""

    address: str
    """Nobody else's, so that every port of it is free."""
    folder: Path
    port: int = 9443
    health_port: int = 8081

    @property
    def health(self) -> str:
        """Where it says how it is."""
        return f"{self.address}:{self.health_port}"

    @property
    def authority(self) -> str:
        return base64.b64encode((self.folder / "tls.crt").read_bytes()).decode()

    def client(self, path: str) -> dict[str, Any]:
        """How the API server calls it."""
        return {"url": f"https://{self.address}:{self.port}{path}", "caBundle": self.authority}


def door(folder: Path) -> Door:
    """Make the certificate in a folder, under the names that controllers look for."""
    folder.mkdir(parents=True)
    made = Door(place.free_address(), folder)
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-days", "30", "-subj", "/CN=webhooks", "-addext", f"subjectAltName=IP:{made.address}",
        "-keyout", folder / "tls.key", "-out", folder / "tls.crt")  # fmt: skip
    return made


def configurations(
    documents: Iterable[Manifest],
    at: Door,
    name: str,
    *,
    within: Collection[str],
    wanted: Callable[[Mapping[str, Any]], bool] = lambda _hook: True,
) -> list[Manifest]:
    """Return the webhook configurations with the wanted webhooks; those of namespaced kinds within these."""
    return [_moved(one, at, name, wanted, within) for one in documents if one["kind"].endswith("Configuration")]


def _moved(
    found: Manifest, at: Door, name: str, wanted: Callable[[Mapping[str, Any]], bool], within: Collection[str]
) -> Manifest:
    made = copy.deepcopy(found)
    made["metadata"] = {"name": name}
    made["webhooks"] = [hook for hook in made["webhooks"] if wanted(hook)]
    for hook in made["webhooks"]:
        hook["clientConfig"] = at.client(hook["clientConfig"]["service"]["path"])
        inside = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(within)}
        hook["namespaceSelector"] = {"matchExpressions": [inside]}
    return made


def with_conversion(crd: Manifest, at: Door) -> Manifest:
    """Return a CRD of several versions, which the same server converts."""
    if len(crd["spec"]["versions"]) < 2:
        return crd
    how = {"clientConfig": at.client("/convert"), "conversionReviewVersions": ["v1"]}
    return {**crd, "spec": {**crd["spec"], "conversion": {"strategy": "Webhook", "webhook": how}}}
