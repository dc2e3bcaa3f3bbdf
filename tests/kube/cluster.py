"""
The cluster as a whole: up, down, heal.

The state file is written before the first thing is made and says `running` only after the last: whatever a
killed run left is recognised by it, and by the fixed names, and is cleaned away before a fresh start. A
running cluster is used as it is only when it was made by the same recipe; else it is replaced.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.kube import binaries as tools
from tests.kube import (
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
)
from tests.kube.binaries import Binaries
from tests.kube.errors import ClusterError
from tests.kube.kubectl import Kubectl
from tests.kube.layout import Node
from tests.kube.progress import step
from tests.kube.wait import until

DEFAULT_NODES = 2

_STATE_FILE = paths.STATE / "cluster.json"
_LOCK_FILE = Path("/run/lock/mpirt-kube")
_NODE_READY_WITHIN = 90.0

# The modules whose text decides what a cluster is like; the rest only drives it.
_RECIPE = ("cgroups", "controlplane", "dns", "kubeconfig", "layout", "network", "nodes", "pki")


@dataclass(frozen=True)
class State:
    """What is written down about the cluster that is, or was half, on this machine."""

    key: str
    nodes: int
    phase: str
    forwarding: str

    @property
    def members(self) -> list[Node]:
        return layout.nodes(self.nodes)


def up(count: int | None = None) -> None:
    """Bring the cluster up with so many nodes, or heal the one that runs."""
    # What another cluster of ours holds is not in the way: it is healed or replaced.
    preflight.check_machine(ports=() if state() else layout.listening())
    packages.ensure()
    if state() is None:
        preflight.check_kernel()
    with lock():
        wanted = count or _running_nodes() or DEFAULT_NODES
        present = state()
        found = tools.ensure()
        if present and present.phase == "running" and present.key == _key(found, wanted):
            _heal(present, found)
        else:
            _replace(present, found, wanted)


def down() -> None:
    """Remove everything of the cluster but caches and images; without a cluster it removes leftovers."""
    with lock():
        _remove(state())


def state() -> State | None:
    try:
        return State(**json.loads(_STATE_FILE.read_text()))
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None


def running() -> State:
    """The state of the running cluster; raises when there is none."""
    present = state()
    if present is None or present.phase != "running" or daemons.pid_of(present.members[0].holder) is None:
        raise ClusterError("no cluster is running", remedy="start one: make cluster")
    return present


def load_images(names: Sequence[str] | None = None) -> list[images.Archive]:
    """Build the images that are missing and put them on every node."""
    present = running()
    found = tools.ensure()
    archives = images.ensure(names)
    _on_all(present.members, lambda node: _load(node, found, archives))
    return archives


def kubectl() -> Kubectl:
    """The administrator's kubectl against the running cluster."""
    running()
    return Kubectl(tools.ensure().kubectl, paths.KUBECONFIG)


def versions() -> Mapping[str, str]:
    return tools.ensure().versions


@contextmanager
def lock() -> Iterator[None]:
    """One command at a time changes the cluster."""
    _LOCK_FILE.parent.mkdir(parents=True, exist_ok=True)
    with _LOCK_FILE.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _running_nodes() -> int | None:
    present = state()
    return present.nodes if present and present.phase == "running" else None


def _key(found: Binaries, count: int) -> str:
    digest = hashlib.sha256(f"{found.key} {count}".encode())
    for name in _RECIPE:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()[:12]


def _replace(present: State | None, found: Binaries, count: int) -> None:
    if present or network.bridge_exists() or network.leftovers() or cgroups.leftovers():
        with step("cleaning up after another cluster"):
            _remove(present)
    preflight.check_ports(layout.listening())
    fresh = State(_key(found, count), count, "starting", network.forwarding())
    _write(fresh)
    members = fresh.members
    with step("network and control plane"):
        network.create(members)
        pki.create(members)
        controlplane.create(found)
        dns.create(found)
    with step(f"{count} nodes"):
        _on_all(members, lambda node: nodes.create(node, found))
        pause = [images.pause(found.pause)]
        _on_all(members, lambda node: _load(node, found, pause))
        _start_kubelets(members, found)
    _write(State(fresh.key, count, "running", fresh.forwarding))


def _heal(present: State, found: Binaries) -> None:
    """Undo every fault and start what is dead. On a cluster in good health it only looks."""
    faults.undo_all(present.members)
    controlplane.start(found)
    dns.start(found)
    dead = [node for node in present.members if daemons.pid_of(node.holder) is None]
    if dead:
        _replace(present, found, present.nodes)
        return
    for node in present.members:
        nodes.start_containerd(node, found)
        nodes.start_kubelet(node, found)
    _wait_for_nodes(present.members, found)


def _start_kubelets(members: Sequence[Node], found: Binaries) -> None:
    for node in members:
        nodes.start_kubelet(node, found)
    _wait_for_nodes(members, found)


def _wait_for_nodes(members: Sequence[Node], found: Binaries) -> None:
    admin = Kubectl(found.kubectl, kubeconfig.write(paths.KUBECONFIG, "admin"))
    until(
        lambda: admin.ready_nodes() >= {node.name for node in members},
        within=_NODE_READY_WITHIN,
        what="all nodes to be Ready",
        remedy=f"see the kubelets' logs in {paths.LOGS}, and: python -m tests.kube status",
    )


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
    if present:
        network.set_forwarding(present.forwarding)
    cgroups.delete()
    nodes.delete_built_in_folders()
    shutil.rmtree(paths.RUN, ignore_errors=True)
    for folder in ("control-plane", "dns", "logs", "pki"):
        shutil.rmtree(paths.STATE / folder, ignore_errors=True)
    _STATE_FILE.unlink(missing_ok=True)
    paths.KUBECONFIG.unlink(missing_ok=True)


def _write(fresh: State) -> None:
    paths.STATE.mkdir(parents=True, exist_ok=True)
    _STATE_FILE.write_text(json.dumps(asdict(fresh)) + "\n")


def _on_all(members: Sequence[Node], work: Callable[[Node], object]) -> None:
    """Do the same on all nodes at once; the first error is raised after all have ended."""
    with ThreadPoolExecutor(max_workers=max(len(members), 1)) as pool:
        for done in [pool.submit(work, node) for node in members]:
            done.result()
