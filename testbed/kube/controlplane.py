"""The cluster's etcd, API server, controller manager and scheduler: their place, start and readiness."""

from __future__ import annotations

import json
from collections.abc import Sequence

from testbed.kube import commandlines, daemons, kubeconfig, layout, paths, pki
from testbed.kube.commandlines import Site
from testbed.kube.daemons import Daemon
from testbed.kube.layout import Node
from testbed.kube.pki import Secrets
from testbed.kube.programs import Binaries
from testbed.kube.wait import until

ETCD = "etcd"
APISERVER = "apiserver"
CONTROLLER_MANAGER = "controller-manager"
SCHEDULER = "scheduler"
COMPONENTS = (ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER)

AUDIT_LOG = paths.LOGS / "audit.log"

SITE = Site(
    folder=paths.STATE / "control-plane",
    secrets=Secrets(paths.STATE / "pki"),
    address=layout.API_ADDRESS,
    local=layout.LOCAL_ADDRESS,
    services=str(layout.SERVICE_NETWORK),
    api_port=layout.API_PORT,
    etcd_port=layout.ETCD_PORT,
    etcd_peer_port=layout.ETCD_PEER_PORT,
    controller_manager_port=layout.CONTROLLER_MANAGER_PORT,
    scheduler_port=layout.SCHEDULER_PORT,
)

_AUDIT_POLICY_FILE = SITE.folder / "audit-policy.json"
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


def create_secrets(nodes: Sequence[Node]) -> None:
    """Make the secrets of a new cluster, with a token for each of its users."""
    domain = layout.CLUSTER_DOMAIN
    pki.create(
        SITE.secrets,
        users=[
            ("system:kube-proxy", ""),
            ("network-policies", "system:masters"),
            ("dns", pki.MASTERS),
            *((f"system:node:{node.name}", "system:nodes") for node in nodes),
        ],
        addresses=[layout.API_SERVICE, layout.API_ADDRESS, "127.0.0.1"],
        names=["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{domain}",
               "localhost"],
    )  # fmt: skip


def create(binaries: Binaries) -> None:
    """Write the files that the components read, and start them; returns when the API server is ready."""
    SITE.folder.mkdir(parents=True)
    kubeconfig.write(SITE.kubeconfig(CONTROLLER_MANAGER), SITE, pki.CONTROLLER_MANAGER)
    kubeconfig.write(SITE.kubeconfig(SCHEDULER), SITE, pki.SCHEDULER)
    _AUDIT_POLICY_FILE.write_text(json.dumps(_AUDIT_POLICY))
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
    return commandlines.is_ready(SITE)


def _daemon(component: str, binaries: Binaries) -> Daemon:
    match component:
        case "etcd":
            return Daemon(component, commandlines.etcd(binaries.etcd, SITE))
        case "apiserver":
            return Daemon(component, _apiserver(binaries))
        case "controller-manager":
            return Daemon(component, commandlines.controller_manager(binaries.controller_manager, SITE))
        case "scheduler":
            return Daemon(component, commandlines.scheduler(binaries.scheduler, SITE))
    raise KeyError(component)


def _apiserver(binaries: Binaries) -> list[str]:
    return commandlines.apiserver(
        binaries.apiserver,
        SITE,
        "--kubelet-preferred-address-types=InternalIP",
        f"--audit-policy-file={_AUDIT_POLICY_FILE}",
        f"--audit-log-path={AUDIT_LOG}",
        # No kube-proxy runs on the host: webhooks and aggregated APIs are called at their pods' own addresses.
        "--enable-aggregator-routing",
    )
