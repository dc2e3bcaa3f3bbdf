"""
The cluster's network: a bridge on the host, a namespace and a cable for each node, routes between them.

The API server and the DNS listen on the bridge; pods reach them by their Services, as everything else, through
the kube-proxy of their node.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from testbed.kube import layout
from testbed.kube.errors import ClusterError
from testbed.kube.layout import Node
from testbed.kube.shell import output, run

_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")


def forwarding() -> str:
    return _FORWARDING.read_text().strip()


def set_forwarding(value: str) -> None:
    _FORWARDING.write_text(value)


def create(nodes: Sequence[Node]) -> None:
    """Lay bridge, addresses, chains and every node's cable. Expects none of them to be there."""
    run("ip", "link", "add", layout.BRIDGE, "type", "bridge")
    run("ip", "address", "add", f"{layout.GATEWAY}/{layout.NETWORK.prefixlen}", "dev", layout.BRIDGE)
    run("ip", "link", "set", layout.BRIDGE, "up")
    set_forwarding("1")
    _create_chains()
    for node in nodes:
        _create_node(node, nodes)


def delete(nodes: Sequence[Node]) -> None:
    """Remove all of it; what is not there is passed over."""
    _delete_chains()
    for node in nodes:
        run("ip", "link", "delete", node.link, check=False)
        run("ip", "netns", "delete", node.namespace, check=False)
    run("ip", "link", "delete", layout.BRIDGE, check=False)


def leftovers() -> list[Node]:
    """Nodes that have a namespace on this machine, whoever made it."""
    prefix = layout.Node(0).namespace.removesuffix("0")
    names = (line.split()[0] for line in output("ip", "netns", "list").splitlines() if line.strip())
    numbers = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return [Node(int(number)) for number in numbers if number.isdigit()]


def bridge_exists() -> bool:
    return Path("/sys/class/net", layout.BRIDGE).exists()


def cut(node: Node) -> None:
    """Pull the node's cable: its packets are lost, and nobody is told."""
    run("ip", "link", "set", node.link, "down")


def mend(node: Node) -> None:
    run("ip", "link", "set", node.link, "up")


def is_cut(node: Node) -> bool:
    flags = Path("/sys/class/net", node.link, "flags").read_text()
    return not int(flags, 16) & 1


def drop(*, source: str | None = None, only_new: bool = False) -> None:
    """
    Drop the packets to the API server's port and back: open connections become half-open, new ones hang.

    `source` narrows it to one address (a pod, the host's own); `only_new` lets what is open live on.
    """
    here = ["-d", layout.API_ADDRESS, "-p", "tcp", "--dport", str(layout.API_PORT)]
    back = ["-s", layout.API_ADDRESS, "-p", "tcp", "--sport", str(layout.API_PORT)]
    if source:
        here += ["-s", source]
        back += ["-d", source]
    if only_new:
        here.append("--syn")
    _iptables("-A", layout.FAULT_CHAIN, *here, "-j", "DROP")
    if not only_new:
        _iptables("-A", layout.FAULT_CHAIN, *back, "-j", "DROP")


def reset() -> None:
    """Answer the packets to the API server's port with a reset: open connections end, new ones are refused."""
    here = ["-d", layout.API_ADDRESS, "-p", "tcp", "--dport", str(layout.API_PORT)]
    _iptables("-A", layout.FAULT_CHAIN, *here, "-j", "REJECT", "--reject-with", "tcp-reset")


def undrop() -> None:
    _iptables("-F", layout.FAULT_CHAIN)


def drops() -> list[str]:
    """The rules that drop or reject packets now, as iptables writes them."""
    listed = output("iptables", "-w", "-S", layout.FAULT_CHAIN).splitlines()
    return [line for line in listed if line.startswith("-A")]


def _create_node(node: Node, nodes: Sequence[Node]) -> None:
    inside = ("ip", "-n", node.namespace)
    run("ip", "netns", "add", node.namespace)
    run("ip", "link", "add", node.link, "type", "veth", "peer", "name", "eth0", "netns", node.namespace)
    run("ip", "link", "set", node.link, "master", layout.BRIDGE, "up")
    run(*inside, "link", "set", "lo", "up")
    run(*inside, "address", "add", f"{node.address}/{layout.NETWORK.prefixlen}", "dev", "eth0")
    run(*inside, "link", "set", "eth0", "up")
    run(*inside, "route", "add", "default", "via", layout.GATEWAY)
    for other in nodes:
        if other != node:
            run(*inside, "route", "add", str(other.pods), "via", other.address)
    run("ip", "route", "add", str(node.pods), "via", node.address, "dev", layout.BRIDGE)
    run("ip", "netns", "exec", node.namespace, "sysctl", "-qw", "net.ipv4.ip_forward=1")


def _create_chains() -> None:
    """Let the cluster's packets through: FORWARD may be closed on a machine with Docker or a firewall."""
    for chain in (layout.FAULT_CHAIN, layout.FORWARD_CHAIN):
        _iptables("-N", chain)
    for network in (layout.NETWORK, layout.POD_NETWORK):
        _iptables("-A", layout.FORWARD_CHAIN, "-s", str(network), "-j", "ACCEPT")
        _iptables("-A", layout.FORWARD_CHAIN, "-d", str(network), "-j", "ACCEPT")
    for hook, chain in _HOOKS:
        _iptables("-I", hook, "1", "-j", chain)


def _delete_chains() -> None:
    for hook, chain in _HOOKS:
        with suppress(ClusterError):
            _iptables("-D", hook, "-j", chain)
    for chain in (layout.FAULT_CHAIN, layout.FORWARD_CHAIN):
        for action in ("-F", "-X"):
            with suppress(ClusterError):
                _iptables(action, chain)


_HOOKS = (
    ("INPUT", layout.FAULT_CHAIN),
    ("OUTPUT", layout.FAULT_CHAIN),
    ("FORWARD", layout.FORWARD_CHAIN),
)


def _iptables(*words: str) -> None:
    run("iptables", "-w", *words)
