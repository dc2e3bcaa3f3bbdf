"""
The command lines of etcd, API server, controller manager and scheduler, for any place where they run.

Owns: the flags that every control plane here has. Starts nothing.
"""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from testbed.kube import layout, pki
from testbed.kube.pki import Secrets

# Go collects garbage when what it holds has doubled. Where it may treble, an API server takes some hundredths less
# of a processor, and some hundred megabytes more.
COLLECTED_SELDOM = {"GOGC": "200"}


@dataclass(frozen=True, slots=True)
class Site:
    """Where a control plane has its files, and where it listens. `local` is for what no pod may reach."""

    folder: Path
    secrets: Secrets
    address: str
    local: str
    services: str
    """The network that Services get addresses of."""
    api_port: int
    etcd_port: int
    etcd_peer_port: int
    controller_manager_port: int
    scheduler_port: int

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.api_port}"

    @property
    def etcd_url(self) -> str:
        return f"http://{self.local}:{self.etcd_port}"

    def kubeconfig(self, component: str) -> Path:
        """That of a component, which somebody writes before it starts."""
        return self.folder / f"{component}.kubeconfig"


def etcd(program: Path, site: Site) -> list[str]:
    peers = f"http://{site.local}:{site.etcd_peer_port}"
    return [
        str(program),
        f"--data-dir={site.folder / 'etcd'}",
        f"--listen-client-urls={site.etcd_url}",
        f"--advertise-client-urls={site.etcd_url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        # The data lives as long as the cluster: a crash of the machine may cost it.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(program: Path, site: Site, *more: str) -> list[str]:
    """Of a flag that stands twice the later one counts, except where its value is a list."""
    return [
        str(program),
        f"--etcd-servers={site.etcd_url}",
        f"--bind-address={site.address}",
        f"--advertise-address={site.address}",
        f"--secure-port={site.api_port}",
        f"--service-cluster-ip-range={site.services}",
        f"--tls-cert-file={site.secrets.api_certificate}",
        f"--tls-private-key-file={site.secrets.api_key}",
        f"--token-auth-file={site.secrets.tokens}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged",
        f"--service-account-issuer=https://kubernetes.default.svc.{layout.CLUSTER_DOMAIN}",
        f"--service-account-signing-key-file={site.secrets.accounts_key}",
        f"--service-account-key-file={site.secrets.accounts_public}",
        *more,
    ]


def controller_manager(program: Path, site: Site, *more: str) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={site.kubeconfig('controller-manager')}",
        f"--bind-address={site.local}",
        f"--secure-port={site.controller_manager_port}",
        # Alone, so there is nobody to lose a lease to while a test keeps the API server away.
        "--leader-elect=false",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={site.secrets.accounts_key}",
        f"--root-ca-file={site.secrets.ca}",
        # The default of 20 a second makes every removed namespace take ten, and tests remove many.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        *more,
    ]


def scheduler(program: Path, site: Site, *more: str) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={site.kubeconfig('scheduler')}",
        f"--bind-address={site.local}",
        f"--secure-port={site.scheduler_port}",
        "--leader-elect=false",
        *more,
    ]


def is_ready(site: Site) -> bool:
    """Whether the API server answers /readyz, over verified TLS."""
    request = urllib.request.Request(
        f"{site.url}/readyz", headers={"Authorization": f"Bearer {site.secrets.token(pki.ADMIN)}"}
    )
    try:
        trust = ssl.create_default_context(cafile=site.secrets.ca)
        with urllib.request.urlopen(request, timeout=2, context=trust) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
