"""
The cluster's DNS: CoreDNS on the host, behind the Service by which pods know it.

It is no pod, so that no fault of a node takes it away.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

from testbed.kube import controlplane, daemons, kubeconfig, layout, paths
from testbed.kube.daemons import Daemon
from testbed.kube.kubectl import Kubectl, Manifest
from testbed.kube.programs import Binaries
from testbed.kube.wait import until

DNS = "dns"
COMPONENTS = (DNS,)

_FOLDER = paths.STATE / "dns"
_KUBECONFIG = _FOLDER / "kubeconfig"
_COREFILE = _FOLDER / "Corefile"
_READY_WITHIN = 30.0


def create(binaries: Binaries, admin: Kubectl) -> None:
    """Start it, and give it its Service; the API server must be there."""
    _FOLDER.mkdir(parents=True)
    kubeconfig.write(_KUBECONFIG, controlplane.SITE, "dns")
    _COREFILE.write_text(_corefile())
    admin.inside("kube-system").apply(*_service())
    start(binaries)


def start(binaries: Binaries) -> None:
    """Start it unless it runs; returns when it knows the cluster's Services."""
    daemons.start(Daemon(DNS, _argv(binaries.coredns)))
    until(_is_ready, within=_READY_WITHIN, what="the DNS", remedy=f"see {paths.LOGS}/{DNS}.log")


def stop() -> None:
    daemons.stop(DNS)


def _argv(program: Path) -> list[str]:
    return [str(program), f"-conf={_COREFILE}"]


def _corefile() -> str:
    """No cache: a pod asks for its peers while they come up, and what is missing now must not be remembered."""
    return f"""\
{layout.CLUSTER_DOMAIN} in-addr.arpa {{
    bind {layout.DNS_ADDRESS}
    ready {layout.LOCAL_ADDRESS}:{layout.DNS_READY_PORT}
    errors
    kubernetes {layout.CLUSTER_DOMAIN} in-addr.arpa {{
        kubeconfig {_KUBECONFIG}
        ttl 0
    }}
}}
"""


def _is_ready() -> bool:
    url = f"http://{layout.LOCAL_ADDRESS}:{layout.DNS_READY_PORT}/ready"
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _service() -> list[Manifest]:
    ports = [
        {"name": "dns", "port": layout.DNS_PORT, "protocol": "UDP"},
        {"name": "dns-tcp", "port": layout.DNS_PORT, "protocol": "TCP"},
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kube-dns"},
            "spec": {"clusterIP": layout.DNS_SERVICE, "ports": ports},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "kube-dns", "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [layout.DNS_ADDRESS]}],
            "ports": ports,
        },
    ]
