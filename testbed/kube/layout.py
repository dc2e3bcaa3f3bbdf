"""
The cluster's fixed names and addresses, as values.

Every link, namespace, cgroup and chain carries the prefix `mpirt`, so that a leftover is recognised and nothing
else is ever touched; a second cluster on the machine has names and addresses of its own. The control plane listens
only on addresses of its own: a port that is busy on 127.0.0.1 does not matter, one that is bound on all addresses
does. Pods reach it by the addresses of Services.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from testbed.kube import paths

_OTHERS = paths.NUMBER - 1

BRIDGE = f"mpirt{_OTHERS}"
NETWORK = IPv4Network(f"10.250.{_OTHERS}.0/24")
GATEWAY = str(NETWORK[1])
POD_NETWORK = IPv4Network(f"10.{244 + _OTHERS}.0.0/16")
SERVICE_NETWORK = IPv4Network(f"10.{96 + _OTHERS}.0.0/16")

# Kubernetes itself gives the Service of the API server the first address.
API_SERVICE = str(SERVICE_NETWORK[1])
DNS_SERVICE = str(SERVICE_NETWORK[10])
CLUSTER_DOMAIN = "cluster.local"

API_ADDRESS = GATEWAY
API_PORT = 6443
DNS_ADDRESS = GATEWAY
DNS_PORT = 53

# A loopback address of our own, for what no pod may reach.
LOCAL_ADDRESS = f"127.77.{_OTHERS}.1"
ETCD_PORT = 2379
ETCD_PEER_PORT = 2380
CONTROLLER_MANAGER_PORT = 10257
SCHEDULER_PORT = 10259
DNS_READY_PORT = 8181

FAULT_CHAIN = f"MPIRT-FAULT{paths.SUFFIX}"
FORWARD_CHAIN = f"MPIRT-FORWARD{paths.SUFFIX}"

CGROUP = paths.NAME

# Every process that the cluster starts carries this variable, as its children outside of containers do.
PROCESS_MARK = f"MPIRT_KUBE_PROCESS{paths.SUFFIX}".replace("-", "_")

PAUSE_IMAGE = "mpirt-test/pause:dev"

MOST_NODES = 20


@dataclass(frozen=True)
class Node:
    """One node: a network namespace, a mount namespace, a containerd, a kubelet and a kube-proxy."""

    number: int

    @property
    def name(self) -> str:
        return f"node-{self.number}"

    @property
    def namespace(self) -> str:
        return f"mpirt{paths.SUFFIX}-node-{self.number}"

    @property
    def link(self) -> str:
        """The host's end of the node's cable."""
        return f"mpirt{paths.SUFFIX}-n{self.number}"

    @property
    def address(self) -> str:
        return str(NETWORK[10 + self.number])

    @property
    def pods(self) -> IPv4Network:
        return list(POD_NETWORK.subnets(new_prefix=24))[self.number]

    @property
    def cgroup(self) -> str:
        return f"{CGROUP}/{self.name}"

    @property
    def root(self) -> Path:
        return paths.STATE / "nodes" / self.name

    @property
    def containerd_socket(self) -> Path:
        return self.root / "containerd.sock"

    @property
    def holder(self) -> str:
        """The process that keeps the node's namespaces, whatever else of it is killed."""
        return f"{self.name}-holder"

    @property
    def containerd(self) -> str:
        return f"{self.name}-containerd"

    @property
    def kubelet(self) -> str:
        return f"{self.name}-kubelet"

    @property
    def proxy(self) -> str:
        return f"{self.name}-kube-proxy"

    @property
    def router(self) -> str:
        return f"{self.name}-kube-router"


def nodes(count: int) -> list[Node]:
    return [Node(number) for number in range(1, count + 1)]


def listening() -> list[tuple[str, int, str]]:
    """Address, port and purpose of all that the cluster will listen on outside of its namespaces."""
    return [
        (API_ADDRESS, API_PORT, "the API server"),
        (LOCAL_ADDRESS, ETCD_PORT, "etcd"),
        (LOCAL_ADDRESS, ETCD_PEER_PORT, "etcd's peers"),
        (LOCAL_ADDRESS, CONTROLLER_MANAGER_PORT, "the controller manager"),
        (LOCAL_ADDRESS, SCHEDULER_PORT, "the scheduler"),
        (DNS_ADDRESS, DNS_PORT, "the cluster's DNS"),
        (LOCAL_ADDRESS, DNS_READY_PORT, "the DNS' own state"),
    ]
