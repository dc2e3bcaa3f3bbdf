"""etcd, API server, controller manager and scheduler: their command lines, start and readiness."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

from tests.kube import daemons, kubeconfig, layout, paths, pki
from tests.kube.daemons import Daemon
from tests.kube.programs import Binaries
from tests.kube.wait import until

ETCD = "etcd"
APISERVER = "apiserver"
CONTROLLER_MANAGER = "controller-manager"
SCHEDULER = "scheduler"
COMPONENTS = (ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER)

AUDIT_LOG = paths.LOGS / "audit.log"

_FOLDER = paths.STATE / "control-plane"
_READY_WITHIN = 60.0

# Only exec is audited: what the log must be able to show is whether a command leaked into it.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [
        {"level": "Metadata", "resources": [{"group": "", "resources": ["pods/exec"]}]},
        {"level": "None"},
    ],
}


def create(binaries: Binaries) -> None:
    """Write the files that the components read, and start them; returns when the API server is ready."""
    _FOLDER.mkdir(parents=True)
    kubeconfig.write(_FOLDER / "controller-manager.kubeconfig", "system:kube-controller-manager")
    kubeconfig.write(_FOLDER / "scheduler.kubeconfig", "system:kube-scheduler")
    (_FOLDER / "audit-policy.json").write_text(json.dumps(_AUDIT_POLICY))
    start(binaries)


def start(binaries: Binaries) -> None:
    """Start whatever does not run, in order."""
    for component in COMPONENTS:
        start_one(component, binaries)


def start_one(component: str, binaries: Binaries) -> None:
    daemons.start(_daemon(component, binaries))
    if component == APISERVER:
        until(is_ready, within=_READY_WITHIN, what="the API server", remedy=f"see {paths.LOGS}/apiserver.log")


def stop() -> None:
    for component in reversed(COMPONENTS):
        daemons.stop(component)


def is_ready() -> bool:
    """Whether the API server answers /readyz, over verified TLS."""
    request = urllib.request.Request(
        f"{layout.API_URL}/readyz", headers={"Authorization": f"Bearer {pki.token('admin')}"}
    )
    try:
        trust = ssl.create_default_context(cafile=pki.CA)
        with urllib.request.urlopen(request, timeout=2, context=trust) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _daemon(component: str, binaries: Binaries) -> Daemon:
    match component:
        case "etcd":
            return Daemon(component, _etcd(binaries.etcd))
        case "apiserver":
            return Daemon(component, _apiserver(binaries.apiserver))
        case "controller-manager":
            return Daemon(component, _controller_manager(binaries.controller_manager))
        case "scheduler":
            return Daemon(component, _scheduler(binaries.scheduler))
    raise KeyError(component)


def _etcd_url(port: int) -> str:
    return f"http://{layout.LOCAL_ADDRESS}:{port}"


def _etcd(program: Path) -> list[str]:
    clients = _etcd_url(layout.ETCD_PORT)
    peers = _etcd_url(layout.ETCD_PEER_PORT)
    return [
        str(program),
        f"--data-dir={_FOLDER / 'etcd'}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        # The data lives as long as the cluster: a crash of the machine may cost it.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _apiserver(program: Path) -> list[str]:
    return [
        str(program),
        f"--etcd-servers={_etcd_url(layout.ETCD_PORT)}",
        f"--bind-address={layout.API_ADDRESS}",
        f"--advertise-address={layout.API_ADDRESS}",
        f"--secure-port={layout.API_PORT}",
        f"--service-cluster-ip-range={layout.SERVICE_NETWORK}",
        f"--tls-cert-file={pki.API_CERTIFICATE}",
        f"--tls-private-key-file={pki.API_KEY}",
        f"--token-auth-file={pki.TOKENS}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged",
        f"--service-account-issuer=https://kubernetes.default.svc.{layout.CLUSTER_DOMAIN}",
        f"--service-account-signing-key-file={pki.ACCOUNTS_KEY}",
        f"--service-account-key-file={pki.ACCOUNTS_PUBLIC}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--audit-policy-file={_FOLDER / 'audit-policy.json'}",
        f"--audit-log-path={AUDIT_LOG}",
        # No kube-proxy runs on the host: webhooks and aggregated APIs are called at their pods' own addresses.
        "--enable-aggregator-routing",
    ]


def _controller_manager(program: Path) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={_FOLDER / 'controller-manager.kubeconfig'}",
        f"--bind-address={layout.LOCAL_ADDRESS}",
        f"--secure-port={layout.CONTROLLER_MANAGER_PORT}",
        # Alone, so there is nobody to lose a lease to while a test keeps the API server away.
        "--leader-elect=false",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={pki.ACCOUNTS_KEY}",
        f"--root-ca-file={pki.CA}",
        # The default of 20 a second makes every removed namespace take ten, and tests remove many.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def _scheduler(program: Path) -> list[str]:
    return [
        str(program),
        f"--kubeconfig={_FOLDER / 'scheduler.kubeconfig'}",
        f"--bind-address={layout.LOCAL_ADDRESS}",
        f"--secure-port={layout.SCHEDULER_PORT}",
        "--leader-elect=false",
    ]
