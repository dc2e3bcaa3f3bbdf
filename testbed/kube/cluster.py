"""
The cluster as a whole: up, down, heal.

Whatever a killed run left is recognised by the state file and by the fixed names, and is cleaned away before a
fresh start. A running cluster is used as it is only when it was made by the same recipe; else it is replaced.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from testbed.kube import (
    cgroups,
    controlplane,
    daemons,
    dns,
    faults,
    images,
    kubeconfig,
    layout,
    network,
    nodes,
    packages,
    paths,
    pki,
    preflight,
    programs,
    state,
)
from testbed.kube.kubectl import Kubectl
from testbed.kube.layout import Node
from testbed.kube.programs import Binaries, modules
from testbed.kube.progress import step
from testbed.kube.state import State
from testbed.kube.wait import until

DEFAULT_NODES = 2

_LOCK_FILE = Path("/run/lock", paths.NAME)
_NODE_READY_WITHIN = 300.0

# The modules whose text decides what a cluster is like; the rest only drives it.
_RECIPE = ("cgroups", "commandlines", "controlplane", "dns", "kubeconfig", "layout", "network", "nodes", "pki")


def up(count: int | None = None, kubernetes: str | None = None) -> None:
    """Bring the cluster up, or heal the one that runs; what is not named stays as it is there."""
    present = state.read()
    if kubernetes:
        modules.kubernetes(kubernetes)
    # What another cluster of ours holds is not in the way: it is healed or replaced.
    to_fetch = not programs.are_cached(_version(kubernetes, present))
    preflight.check_machine(fresh=to_fetch, ports=() if present else layout.listening())
    packages.ensure()
    if present is None:
        preflight.check_kernel()
    with lock():
        present = state.read()
        version = _version(kubernetes, present)
        nodes_wanted = count or (present.nodes if present and present.is_running else DEFAULT_NODES)
        found = programs.ensure(version)
        if present and present.is_running and present.key == _key(found, nodes_wanted):
            _heal(present, found)
        else:
            _replace(present, found, State(_key(found, nodes_wanted), version, nodes_wanted, "starting", ""))


def down() -> None:
    """Remove everything of the cluster but caches and images; without a cluster it removes leftovers."""
    with lock():
        _remove(state.read())


def load_images(names: Sequence[str] | None = None) -> list[images.Archive]:
    """Build the images that are missing and put them on every node."""
    present = state.running()
    found = programs.ensure(present.kubernetes)
    archives = images.ensure(names)
    _on_all(present.members, lambda node: _load(node, found, archives))
    return archives


@contextmanager
def enforcing_policies() -> Iterator[None]:
    """Enforce network policies during the block; outside of it they have no effect."""
    found = binaries()
    members = state.running().members
    for node in members:
        nodes.start_router(node, found)
    try:
        yield
    finally:
        for node in members:
            nodes.stop_router(node)


def kubectl() -> Kubectl:
    """The administrator's kubectl against the running cluster."""
    return Kubectl(binaries().kubectl, paths.KUBECONFIG)


def binaries() -> Binaries:
    """The programs of the running cluster."""
    return programs.ensure(state.running().kubernetes)


def versions() -> Mapping[str, str]:
    return binaries().versions


@contextmanager
def lock() -> Iterator[None]:
    """One command at a time changes the cluster."""
    _LOCK_FILE.parent.mkdir(parents=True, exist_ok=True)
    with _LOCK_FILE.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _version(wanted: str | None, present: State | None) -> str:
    """What is wanted, else the version of the first cluster, else that of this one, else the newest."""
    running = (one.kubernetes for one in (state.of_the_first(), present) if one)
    return wanted or next((minor for minor in running if minor in modules.minors()), modules.newest())


def _key(found: Binaries, count: int) -> str:
    digest = hashlib.sha256(f"{found.key} {count}".encode())
    for name in _RECIPE:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()[:12]


def _replace(present: State | None, found: Binaries, wanted: State) -> None:
    if present or network.bridge_exists() or network.leftovers() or cgroups.leftovers():
        with step("cleaning up after another cluster"):
            _remove(present)
    preflight.check_ports(layout.listening())
    wanted = replace(wanted, forwarding=network.forwarding())
    state.write(wanted)
    members = wanted.members
    with step(f"network and control plane of Kubernetes {found.versions['kubernetes']}"):
        network.create(members)
        controlplane.create_secrets(members)
        controlplane.create(found)
        dns.create(found, _admin(found))
    with step(f"{wanted.nodes} nodes"):
        _on_all(members, lambda node: nodes.create(node, found))
        pause = [images.pause(found.pause)]
        _on_all(members, lambda node: _load(node, found, pause))
        _complete_nodes(members, found)
    state.write(replace(wanted, phase="running"))


def _heal(present: State, found: Binaries) -> None:
    """Undo every fault and start what is dead. On a cluster in good health it only looks."""
    faults.undo_all(present.members)
    controlplane.start(found)
    dns.start(found)
    dead = [node for node in present.members if daemons.pid_of(node.holder) is None]
    if dead:
        _replace(present, found, replace(present, phase="starting"))
        return
    for node in present.members:
        nodes.start_containerd(node, found)
    _complete_nodes(present.members, found)


def _complete_nodes(members: Sequence[Node], found: Binaries) -> None:
    """Start what else runs on nodes that have a containerd."""
    admin = _admin(found)

    def are_ready() -> bool:
        # kubelet ends at once while containerd still reads what it had before. Elsewhere systemd starts it again.
        for node in members:
            nodes.start_kubelet(node, found)
            nodes.start_proxy(node, found)
        return admin.ready_nodes() >= {node.name for node in members}

    until(
        are_ready,
        within=_NODE_READY_WITHIN,
        what="all nodes to be Ready",
        instead=lambda: f"{admin.readiness_of_nodes()}; {_last_words(members, admin)}",
        remedy=f"see the kubelets' logs in {paths.LOGS}, and: python -m testbed.kube status",
    )


def _last_words(members: Sequence[Node], admin: Kubectl) -> str:
    """The last line that each kubelet has logged whose node is not Ready."""
    ready = admin.ready_nodes()
    said = {node.kubelet: daemons.last_line(node.kubelet) for node in members if node.name not in ready}
    return ", ".join(f"{name} said: {line}" for name, line in said.items())


def _admin(found: Binaries) -> Kubectl:
    return Kubectl(found.kubectl, kubeconfig.write(paths.KUBECONFIG, controlplane.SITE, pki.ADMIN))


def _load(node: Node, found: Binaries, archives: Sequence[images.Archive]) -> None:
    images.load(archives, lambda *words: nodes.ctr(node, found, *words))


def _remove(present: State | None) -> None:
    """Nodes, control plane, whatever else carries the mark, network, control groups, files: in this order."""
    members = {node.number: node for node in [*(present.members if present else []), *network.leftovers()]}
    doomed = [members[number] for number in sorted(members)]
    faults.thaw_all()
    _on_all(doomed, nodes.delete)
    dns.stop()
    controlplane.stop()
    daemons.stop_all_marked()
    network.delete(doomed)
    cgroups.delete()
    # Two clusters on a machine have the same packets forwarded, and the same folders to mount over.
    if not state.is_another_there():
        if present:
            network.set_forwarding(present.forwarding)
        nodes.delete_built_in_folders()
    shutil.rmtree(paths.RUN, ignore_errors=True)
    for folder in ("control-plane", "dns", "logs", "pki"):
        shutil.rmtree(paths.STATE / folder, ignore_errors=True)
    state.forget()
    paths.KUBECONFIG.unlink(missing_ok=True)


def _on_all(members: Sequence[Node], work: Callable[[Node], object]) -> None:
    """Do the same on all nodes at once; the first error is raised after all have ended."""
    with ThreadPoolExecutor(max_workers=max(len(members), 1)) as pool:
        for done in [pool.submit(work, node) for node in members]:
            done.result()
