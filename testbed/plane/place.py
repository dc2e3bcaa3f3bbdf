"""Where a control plane without nodes listens: a loopback address of its own, and free ports of it."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

from testbed.kube.commandlines import Site
from testbed.kube.errors import ClusterError
from testbed.kube.pki import Secrets

_ATTEMPTS = 20


def fresh(folder: Path) -> Site:
    """A site in this folder."""
    address = free_address()
    api, etcd, peers, manager, scheduler = free_ports(address, 5)
    return Site(
        folder=folder,
        secrets=Secrets(folder / "pki"),
        address=address,
        local=address,
        services="10.96.0.0/16",
        api_port=api,
        etcd_port=etcd,
        etcd_peer_port=peers,
        controller_manager_port=manager,
        scheduler_port=scheduler,
    )


def free_ports(address: str, count: int) -> list[int]:
    """Ports on which nobody listens at that address. Who asks a moment later may be told the same ones."""
    taken = [socket.create_server((address, 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in taken]
    for each in taken:
        each.close()
    return ports


def free_address() -> str:
    """An address in 127.0.0.0/8 that is nobody else's, as far as chance goes."""
    for _ in range(_ATTEMPTS):
        address = f"127.{128 + secrets.randbelow(120)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
        try:
            free_ports(address, 1)
        except OSError:
            continue
        return address
    raise ClusterError("this machine has no loopback addresses but 127.0.0.1", remedy="run the tests on Linux")
