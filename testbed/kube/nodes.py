"""
A node: containerd, kubelet, kube-proxy, and kube-router at times, in a network and a mount namespace of their own.

A holder process keeps both namespaces, so each of them can be killed and started again in them. The
node has a /run of its own and its own folders over the paths that kubelet has built in; when the last process
of the namespace ends, its mounts end with it. It does not have a pid namespace: `ctr`, signals and /proc work
from the host.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from testbed.kube import cgroups, daemons, kubeconfig, layout, paths
from testbed.kube.controlplane import SITE
from testbed.kube.daemons import Daemon
from testbed.kube.layout import Node
from testbed.kube.programs import Binaries
from testbed.kube.shell import run
from testbed.kube.wait import until

# Built into kubelet and the CNI plugins; each node sees a folder of its own there.
_BUILT_IN = ("/var/lib/kubelet", "/var/log/pods", "/var/log/containers", "/var/lib/cni")
_READY_WITHIN = 30.0


def create(node: Node, binaries: Binaries) -> None:
    """Write the node's files, make its namespaces and start containerd; kubelet is started by `start`."""
    _wipe(node)
    for folder in _BUILT_IN:
        _own(node, folder).mkdir(parents=True, exist_ok=True)
        Path(folder).mkdir(parents=True, exist_ok=True)
    _resolv_conf(node).write_text(f"nameserver {layout.DNS_SERVICE}\n")
    (node.root / "containerd.toml").write_text(_containerd_config(node, binaries))
    (node.root / "net.d").mkdir(exist_ok=True)
    (node.root / "net.d" / "10-mpirt.conflist").write_text(json.dumps(_cni_config(node)))
    (node.root / "kubelet.json").write_text(json.dumps(_kubelet_config(node)))
    kubeconfig.write(node.root / "kubelet.kubeconfig", SITE, f"system:node:{node.name}")
    (node.root / "kube-proxy.json").write_text(json.dumps(_proxy_config(node)))
    kubeconfig.write(node.root / "kube-proxy.kubeconfig", SITE, "system:kube-proxy")
    kubeconfig.write(node.root / "kube-router.kubeconfig", SITE, "network-policies")
    cgroups.create(node.cgroup)
    _start_holder(node)
    start_containerd(node, binaries)
    _forget_containers(node, binaries)


def start_containerd(node: Node, binaries: Binaries) -> None:
    folders = os.pathsep.join([str(binaries.shim_folder), str(binaries.runc.parent), os.environ["PATH"]])
    config = str(node.root / "containerd.toml")
    argv = [*_inside(node), str(binaries.containerd), "--config", config]
    daemons.start(Daemon(node.containerd, argv, env={"PATH": folders}))
    until(
        lambda: ctr(node, binaries, "version", check=False).returncode == 0,
        within=_READY_WITHIN,
        what=f"containerd of {node.name}",
        remedy=f"see {paths.LOGS}/{node.containerd}.log",
    )


def start_kubelet(node: Node, binaries: Binaries) -> None:
    argv = [
        *_inside(node),
        str(binaries.kubelet),
        f"--config={node.root / 'kubelet.json'}",
        f"--kubeconfig={node.root / 'kubelet.kubeconfig'}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        f"--cert-dir={node.root / 'kubelet-pki'}",
        # By default it is forgotten how a container ended, if what is left of it is collected, once a minute,
        # while its successor is made but does not run yet.
        "--minimum-container-ttl-duration=5s",
    ]
    daemons.start(Daemon(node.kubelet, argv))


def start_proxy(node: Node, binaries: Binaries) -> None:
    """Start what makes Services work."""
    argv = [
        *_inside(node),
        str(binaries.proxy),
        f"--config={node.root / 'kube-proxy.json'}",
        f"--hostname-override={node.name}",
    ]
    daemons.start(Daemon(node.proxy, argv))


def start_router(node: Node, binaries: Binaries) -> None:
    """
    Start what enforces network policies. It ends at once where there is no such node yet.

    It writes all rules anew after each change of a pod, by twenty processes; so it runs only where it is needed.
    """
    argv = [
        *_inside(node),
        str(binaries.kube_router),
        f"--kubeconfig={node.root / 'kube-router.kubeconfig'}",
        f"--hostname-override={node.name}",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        "--health-port=0",
        "--metrics-port=0",
    ]
    daemons.start(Daemon(node.router, argv))


def stop_router(node: Node) -> None:
    """Stop it, and take its rules away. Nobody else has any in these tables of the node."""
    daemons.stop(node.router)
    for tool in ("iptables", "ip6tables"):
        for action in ("-F", "-X"):
            run(*_inside(node), tool, "-w", action)
    run(*_inside(node), "ipset", "destroy")


def delete(node: Node) -> None:
    """End everything that belongs to the node: kubelet first, so that nothing is started again."""
    for name in (node.kubelet, node.proxy, node.router, node.containerd):
        if daemons.pid_of(name):
            daemons.kill(name)
    cgroups.kill(node.cgroup)
    for name in (node.kubelet, node.proxy, node.router, node.containerd, node.holder):
        daemons.stop(name)


def delete_built_in_folders() -> None:
    """Remove the mount points that `create` made on the host; one that is in use is not empty, and stays."""
    for folder in _BUILT_IN:
        with suppress(OSError):
            Path(folder).rmdir()


def ctr(
    node: Node, binaries: Binaries, *words: str | Path, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run containerd's own client against a node, in the namespace that kubelet uses."""
    return run(binaries.ctr, "--address", node.containerd_socket, "--namespace", "k8s.io", *words, check=check)


def container_pids(node: Node, pod_uid: str) -> Iterator[int]:
    """Pids of a pod's processes, as the host sees them."""
    for folder in cgroups.folders(node.cgroup, "memory"):
        if f"pod{pod_uid}" in str(folder):
            with suppress(FileNotFoundError):
                yield from (int(pid) for pid in (folder / "cgroup.procs").read_text().split())


def main_process(pids: Iterable[int]) -> int:
    """
    Of the processes of a container the one that it was started for.

    Numbers don't tell: they begin anew every few minutes. In a process namespace of its own it is 1; in one that
    it shares with other containers it is the oldest.
    """
    ages = {}
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
            ages[pid] = (_pid_inside(pid) != 1, psutil.Process(pid).create_time())
    return min(ages, key=lambda pid: ages[pid])


def main_process_of_pod(node: Node, pod_uid: str) -> int:
    """The same for a pod that has one container."""
    return main_process(pid for pid in container_pids(node, pod_uid) if not is_pause(pid))


def is_pause(pid: int) -> bool:
    """Whether it only holds a pod's namespaces; not of one that has ended."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/comm").read_text() == "pause\n"
    return False


def _pid_inside(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[-1]) for line in status.splitlines() if line.startswith("NSpid:"))


def _resolv_conf(node: Node) -> Path:
    return node.root / "resolv.conf"


def _own(node: Node, folder: str) -> Path:
    return node.root / "own" / folder.strip("/").replace("/", "-")


def _forget_containers(node: Node, binaries: Binaries) -> None:
    """Drop a former cluster's containers; containerd reads its list at the start, so it starts again."""
    left = ctr(node, binaries, "containers", "ls", "-q").stdout.split()
    if left:
        ctr(node, binaries, "containers", "rm", *left, check=False)
        daemons.kill(node.containerd)
        start_containerd(node, binaries)


def _wipe(node: Node) -> None:
    """Forget a former cluster's pods but keep its images: they are the slow part of a start."""
    for name in ("own", "net.d", "kubelet-pki", "containerd/io.containerd.runtime.v2.task"):
        run("rm", "-rf", "--one-file-system", node.root / name)


def _start_holder(node: Node) -> None:
    binds = "".join(f"mount --bind {_own(node, folder)} {folder}\n" for folder in _BUILT_IN)
    # From here the host's name servers may be out of reach, and whoever asks for a registry would wait a minute.
    binds += f"mount --bind {_resolv_conf(node)} /etc/resolv.conf\n"
    script = f"""set -e
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/netns
{binds}: > {node.root}/namespaces-ready
exec sleep infinity
"""
    ready = node.root / "namespaces-ready"
    ready.unlink(missing_ok=True)
    argv = ["nsenter", f"--net=/run/netns/{node.namespace}",
            "unshare", "--mount", "--propagation", "private", "sh", "-c", script]  # fmt: skip
    daemons.start(Daemon(node.holder, argv))
    until(
        ready.exists,
        within=5,
        what=f"the namespaces of {node.name}",
        remedy=f"see {paths.LOGS}/{node.holder}.log",
    )


def _inside(node: Node) -> list[str]:
    """The words that put a program into the node. `ip netns exec` would hide the cgroups."""
    return ["nsenter", "--target", str(daemons.pid_or_fail(node.holder)), "--net", "--mount"]


def _containerd_config(node: Node, binaries: Binaries) -> str:
    """restrict_oom_score_adj: without CAP_SYS_RESOURCE runc can't give a container kubelet's score."""
    return f"""version = 3
root = "{node.root}/containerd"
state = "/run/containerd-state"
oom_score = 0
[grpc]
  address = "{node.containerd_socket}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{layout.PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        SystemdCgroup = false
        BinaryName = "{binaries.runc}"
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{binaries.cni_plugins}"]
    conf_dir = "{node.root}/net.d"
"""


def _cni_config(node: Node) -> dict[str, object]:
    ipam = {"type": "host-local", "ranges": [[{"subnet": str(node.pods)}]], "routes": [{"dst": "0.0.0.0/0"}]}
    # Not a bridge: between two pods of a node, packets would pass kube-proxy by.
    link = {"type": "ptp", "ipMasq": False, "ipam": ipam}
    return {"cniVersion": "1.0.0", "name": "mpirt", "plugins": [link]}


def _proxy_config(node: Node) -> dict[str, object]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(node.root / "kube-proxy.kubeconfig")},
        "clusterCIDR": str(layout.POD_NETWORK),
        # Nodes share one kernel, whose limits are not theirs to set.
        "conntrack": {"maxPerCore": 0},
        "detectLocalMode": "ClusterCIDR",
        "healthzBindAddress": node.address,
        "metricsBindAddress": node.address,
        "mode": "nftables",
    }


def _kubelet_config(node: Node) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        # A throwaway node on a private network; what is tested goes through the API server, which authorises.
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "clusterDNS": [layout.DNS_SERVICE],
        "clusterDomain": layout.CLUSTER_DOMAIN,
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        "enforceNodeAllocatable": [],
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        # The machine may have version 1 of the control groups, which is refused otherwise.
        "failCgroupV1": False,
        "failSwapOn": False,
        # The images are loaded by hand and can't be pulled again.
        "imageGCHighThresholdPercent": 100,
        "maxPods": 250,
        "serializeImagePulls": False,
        "resolvConf": str(_resolv_conf(node)),
    }
