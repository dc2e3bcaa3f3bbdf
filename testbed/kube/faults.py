"""
Faults on demand, and their undoing.

A component is named as people name it: `apiserver`, `kubelet:node-1`, `containerd:node-2`, and any other
daemon by its own name. Every fault is undone by its counterpart, and all of them by `undo_all`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from testbed.kube import cgroups, controlplane, daemons, dns, layout, network, nodes, programs, state
from testbed.kube.errors import ClusterError
from testbed.kube.kubectl import Kubectl
from testbed.kube.layout import Node
from testbed.kube.wait import until

NODE_COMPONENTS = ("kubelet", "containerd", "kube-proxy", "kube-router")


def node_lost(node: Node) -> None:
    """All packets of the node are lost from now on; what runs on it goes on."""
    network.cut(node)


def node_back(node: Node) -> None:
    network.mend(node)


def freeze(component: str) -> None:
    """Stop a component as SIGSTOP does: its connections stay open, and nothing answers."""
    daemons.freeze(_daemon(component))


def thaw(component: str) -> None:
    daemons.thaw(_daemon(component))


def kill(component: str) -> None:
    """End a component with -9. What it manages (containers, for a start) lives on."""
    daemons.kill(_daemon(component))


def start(component: str) -> None:
    """Start a component that was killed, and wait until it answers where it can be asked."""
    found = programs.ensure(state.running().kubernetes)
    kind, colon, name = component.partition(":")
    if kind in NODE_COMPONENTS and colon:
        starts = {
            "containerd": nodes.start_containerd,
            "kube-proxy": nodes.start_proxy,
            "kube-router": nodes.start_router,
            "kubelet": nodes.start_kubelet,
        }
        starts[kind](node_named(name), found)
    elif component in dns.COMPONENTS:
        dns.start(found)
    else:
        controlplane.start_one(_daemon(component), found)


def drop(*, source: str | None = None, only_new: bool = False) -> None:
    network.drop(source=source, only_new=only_new)


def reset() -> None:
    network.reset()


def undrop() -> None:
    network.undrop()


def oom(kubectl: Kubectl, pod: str) -> None:
    """
    Have the kernel's OOM killer end the main process of the pod's first container.

    The pod needs no cooperation and no limit of its own: its memory is capped a little above what it uses,
    its main process is made the killer's only choice, and an eater in its control group takes the rest.
    """
    item = kubectl.get("pod", pod)
    status = item["status"]["containerStatuses"][0]
    container = status["containerID"].removeprefix("containerd://")
    group = _memory_group(node_named(item["spec"]["nodeName"]), container)
    there = [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    victim = nodes.main_process(there)
    for pid in there:
        with suppress(FileNotFoundError, ProcessLookupError):
            Path(f"/proc/{pid}/oom_score_adj").write_text("1000" if pid == victim else "0")
    limit, usage = (
        ("memory.max", "memory.current")
        if cgroups.is_unified()
        else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    )
    (group / limit).write_text(str(int((group / usage).read_text()) + _ROOM))
    eater = [sys.executable, "-c", _EATER, str(victim), str(group / "cgroup.procs")]
    subprocess.run(eater, check=False, timeout=20, stderr=subprocess.DEVNULL)
    until(lambda: not Path(f"/proc/{victim}").exists(), within=5, what=f"the OOM kill of {pod}'s main process")


def force_delete(kubectl: Kubectl, pod: str) -> None:
    """Remove the pod's object at once, whatever its node does."""
    kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")


def node_named(name: str) -> Node:
    number = name.removeprefix("node-")
    if (
        number == name
        or not number.isdigit()
        or not Path("/sys/class/net", layout.Node(int(number)).link).exists()
    ):
        raise ClusterError(f"there is no node {name!r}", remedy="see: python -m testbed.kube status")
    return layout.Node(int(number))


def active(members: Sequence[Node]) -> list[str]:
    """Every fault that is in force, in words."""
    found = [f"{node.name} is cut off" for node in members if network.is_cut(node)]
    found += [f"{name} is frozen" for name in daemons.names() if daemons.is_frozen(name)]
    found += [f"{name} is dead" for name in daemons.names() if daemons.pid_of(name) is None]
    return found + [f"packets are dropped: {rule}" for rule in network.drops()]


def undo_all(members: Sequence[Node]) -> None:
    """Undo every fault but death: who heals starts the dead."""
    thaw_all()
    network.undrop()
    for node in members:
        if network.is_cut(node):
            network.mend(node)


def thaw_all() -> None:
    for name in daemons.names():
        if daemons.is_frozen(name):
            daemons.thaw(name)


# Several times what the eater itself needs, and little enough to be eaten at once.
_ROOM = 96 * 1024 * 1024

# Joins the victim's control group and takes memory until the victim is gone. It writes to a file in memory, which
# counts for the group and not for the eater itself: the killer must never choose it.
_EATER = """
import os, sys
victim, group = sys.argv[1:]
open("/proc/self/oom_score_adj", "w").write("0")
open(group, "w").write(str(os.getpid()))
hoard, piece = os.memfd_create("hoard"), bytes(1 << 20)
while os.path.exists(f"/proc/{victim}") and os.fstat(hoard).st_size < 4 << 30:
    os.write(hoard, piece)
"""


def _memory_group(node: Node, container: str) -> Path:
    for folder in cgroups.folders(node.cgroup, "memory"):
        if folder.name == container:
            return folder
    raise ClusterError(f"no container {container[:12]} runs on {node.name}")


def _daemon(component: str) -> str:
    kind, colon, name = component.partition(":")
    if kind in NODE_COMPONENTS and colon:
        node = node_named(name)
        names = {"containerd": node.containerd, "kube-proxy": node.proxy, "kube-router": node.router}
        return names.get(kind, node.kubelet)
    if component in (*controlplane.COMPONENTS, *dns.COMPONENTS):
        return component
    of_nodes = [f"{kind}:NODE" for kind in NODE_COMPONENTS]
    known = ", ".join([*controlplane.COMPONENTS, *dns.COMPONENTS, *of_nodes])
    raise ClusterError(f"there is no component {component!r}", remedy=f"name one of: {known}")


__all__ = [
    "NODE_COMPONENTS",
    "active",
    "drop",
    "force_delete",
    "freeze",
    "kill",
    "node_back",
    "node_lost",
    "node_named",
    "oom",
    "reset",
    "start",
    "thaw",
    "thaw_all",
    "undo_all",
    "undrop",
]
