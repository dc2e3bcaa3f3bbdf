"""
The cluster's DNS: dnsmasq, and a watcher (dns_watcher.py) that writes the names of headless Services for it.

A Service answers as name.service.namespace.svc.cluster.local for each address that has a host name, and as
service.namespace.svc.cluster.local for all of them, as the Kubernetes DNS specification says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.kube import daemons, kubeconfig, layout, paths
from tests.kube.binaries import Binaries
from tests.kube.daemons import Daemon

SERVER = "dns-server"
WATCHER = "dns-watcher"
COMPONENTS = (SERVER, WATCHER)

_FOLDER = paths.STATE / "dns"
HOSTS = _FOLDER / "hosts"
KUBECONFIG = _FOLDER / "kubeconfig"


def create(binaries: Binaries) -> None:
    _FOLDER.mkdir(parents=True)
    kubeconfig.write(KUBECONFIG, "admin")
    HOSTS.write_text(render([]))
    start(binaries)


def start(binaries: Binaries) -> None:
    for component in COMPONENTS:
        start_one(component, binaries)


def start_one(component: str, binaries: Binaries) -> None:
    if component == SERVER:
        daemons.start(Daemon(SERVER, _server(binaries.dnsmasq)))
    else:
        argv = [sys.executable, "-m", "tests.kube.dns_watcher"]
        daemons.start(Daemon(WATCHER, argv, env={"PYTHONPATH": str(paths.PROJECT)}))


def stop() -> None:
    for component in reversed(COMPONENTS):
        daemons.stop(component)


def render(endpoints: Iterable[Mapping[str, Any]]) -> str:
    """A hosts file for all endpoints, in the API's JSON form."""
    lines = {line for item in endpoints for line in _lines(item)}
    api = f"{layout.API_ADDRESS} kubernetes.default.svc.{layout.CLUSTER_DOMAIN}"
    return "\n".join([api, *sorted(lines)]) + "\n"


def _lines(item: Mapping[str, Any]) -> Iterator[str]:
    meta = item["metadata"]
    service = f"{meta['name']}.{meta['namespace']}.svc.{layout.CLUSTER_DOMAIN}"
    for subset in item.get("subsets") or []:
        for address in subset.get("addresses") or []:
            if address.get("hostname"):
                yield f"{address['ip']} {address['hostname']}.{service}"
            yield f"{address['ip']} {service}"


def _server(program: Path) -> list[str]:
    return [
        str(program),
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--no-resolv",
        "--no-hosts",
        f"--addn-hosts={HOSTS}",
        f"--listen-address={layout.DNS_ADDRESS}",
        "--bind-interfaces",
        f"--local=/{layout.CLUSTER_DOMAIN}/",
        # A pod asks for its peers while they come up: a name that is not there yet must not be remembered.
        "--no-negcache",
        "--local-ttl=0",
        "--user=root",
        "--pid-file=",
    ]
