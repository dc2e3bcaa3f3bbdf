"""
What a machine must be and have, asked before anything is made on it.

The questions are pure: they take facts and answer with a Problem or None. The `check_` functions look the facts
up, and report all problems at once.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import psutil

from testbed.kube import aptroot, aptsources, paths
from testbed.kube.aptsources import Entry
from testbed.kube.errors import ClusterError
from testbed.kube.shell import run

GB = 10**9

# A first run fetches, builds and makes images; any run writes logs and pods' files.
FREE_FOR_A_FIRST_RUN = 12 * GB
FREE_FOR_ANY_RUN = 2 * GB

_OLDEST_DEBIAN = 12
_MACHINES = ("x86_64", "aarch64")
_DNS_PORT = 53
_ELSEWHERE = "set MPIRT_TEST_KUBECONFIG to test against a cluster that you have"

# Each makes what the cluster will make, in namespaces of its own, so that nothing of it remains.
_PROBES: Mapping[str, Sequence[str]] = {
    "bridges": ("ip", "link", "add", "probe", "type", "bridge"),
    "veth links": ("ip", "link", "add", "probe-a", "type", "veth", "peer", "name", "probe-b"),
    "iptables": ("iptables", "-w", "-A", "OUTPUT", "-p", "tcp", "--dport", "1", "-j", "DROP"),
}

# An address, a port and what the cluster needs it for.
Port = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that keeps the cluster from working, and what to do about it."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Listener:
    """A port that a process holds; what isn't known of the process is empty or 0."""

    address: str
    port: int
    kind: socket.SocketKind
    pid: int = 0
    name: str = ""


def check_machine(*, fresh: bool, ports: Iterable[Port] = ()) -> None:
    """Raise unless the cluster can run here; `fresh` says that programs or images are yet to be made."""
    apt_tools = {tool for tool in ("apt-get", "dpkg") if shutil.which(tool)}
    problems = [
        root_problem(os.geteuid()),
        debian_problem(_text("/etc/os-release"), platform.machine(), apt_tools),
        memory_problem(_text("/proc/cgroups"), _text("/sys/fs/cgroup/cgroup.controllers")),
        *_disk_problems(fresh=fresh),
    ]
    if fresh and "apt-get" in apt_tools:
        problems.append(source_problem(aptroot.host_entries()))
    report([*problems, *_port_problems(ports)])


def check_cache() -> None:
    """Raise unless there is room for what a first run fetches and makes."""
    report([_disk_problem(paths.cache(), fresh=True)])


def check_kernel() -> None:
    """Raise unless the kernel has what nodes are made of; needs root and the host's packages."""
    problems = [feature_problem(feature, *_tried("unshare", "--net", *argv)) for feature, argv in _PROBES.items()]
    report([*problems, feature_problem("overlayfs", *_try_overlay())])


def check_ports(ports: Iterable[Port]) -> None:
    """Raise when another process holds a port that the cluster is going to listen on."""
    report(_port_problems(ports))


def report(problems: Iterable[Problem | None]) -> None:
    """Raise one error that tells all problems; none, and it returns."""
    found = [problem for problem in problems if problem]
    if len(found) == 1:
        raise ClusterError(found[0].what, remedy=found[0].remedy)
    if found:
        lines = [f"  - {problem.what}\n    {problem.remedy}" for problem in found]
        raise ClusterError("\n".join([f"{len(found)} things keep the cluster from starting:", *lines]))


def root_problem(uid: int) -> Problem | None:
    if uid == 0:
        return None
    return Problem("a cluster on this machine needs root", f"run as root, or {_ELSEWHERE}")


def debian_problem(os_release: str, machine: str, tools: Iterable[str]) -> Problem | None:
    """`os_release` is the text of /etc/os-release, `tools` those of apt-get and dpkg that are there."""
    known = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    fields = {name: value.strip("\"'") for name, value in known.items()}
    system = fields.get("PRETTY_NAME", "a system without a name")
    remedy = f"run on Debian {_OLDEST_DEBIAN} or later ({' or '.join(_MACHINES)}), or {_ELSEWHERE}"
    lacking = sorted({"apt-get", "dpkg"} - set(tools))
    if lacking:
        return Problem(f"this is {system}, without {' and '.join(lacking)}", remedy)
    if machine not in _MACHINES:
        return Problem(f"this is a {machine} machine", remedy)
    # Testing and unstable have no number, and are newer.
    if fields.get("ID") == "debian" and float(fields.get("VERSION_ID", "99")) < _OLDEST_DEBIAN:
        return Problem(f"this is {system}, which is too old", remedy)
    return None


def disk_problem(folder: Path, free: int, *, fresh: bool) -> Problem | None:
    needed = FREE_FOR_A_FIRST_RUN if fresh else FREE_FOR_ANY_RUN
    if free >= needed:
        return None
    kind = "a first run" if fresh else "a run"
    return Problem(
        f"only {free / GB:.1f} GB free at {folder}; {kind} needs {needed / GB:.0f} GB",
        "free some space there; for the cache, XDG_CACHE_HOME can name another place",
    )


def source_problem(entries: Sequence[Entry]) -> Problem | None:
    """Does the host's apt have a Debian archive that packages can come from?"""
    if aptsources.bookworm_sources(entries):
        return None
    return Problem(aptroot.no_source(entries), aptroot.NO_SOURCE_REMEDY)


def memory_problem(proc_cgroups: str, unified_controllers: str) -> Problem | None:
    """Takes the texts of /proc/cgroups (version 1) and of cgroup.controllers (version 2)."""
    lines = [line.split() for line in proc_cgroups.splitlines()]
    if any(line[0] == "memory" and line[-1] == "1" for line in lines if line):
        return None
    if "memory" in unified_controllers.split():
        return None
    return Problem("the kernel has no memory controller for pods", "boot it with cgroup_enable=memory")


def feature_problem(feature: str, exit_code: int, said: str) -> Problem | None:
    """Judges a probe by how it ended and what it said."""
    if exit_code == 0:
        return None
    lines = said.strip().splitlines() or [f"exit {exit_code}"]
    return Problem(
        f"{feature} can't be used here: {lines[-1]}",
        f"use a kernel that has them and a machine that lets root use them (not a container), or {_ELSEWHERE}",
    )


def port_problem(port: Port, listeners: Iterable[Listener]) -> Problem | None:
    """Does somebody hold this port, at this address or at all addresses?"""
    address, number, purpose = port
    for listener in listeners:
        if listener.port == number and _matters(listener, number) and _overlap(address, listener.address):
            owner = f"{listener.name} (pid {listener.pid})" if listener.pid else "an unknown process"
            what = f"port {number} on {address} is taken by {owner}"
            return Problem(what, f"the cluster needs it for {purpose}: stop that process, then run again")
    return None


def _matters(listener: Listener, number: int) -> bool:
    return listener.kind == socket.SOCK_STREAM or number == _DNS_PORT


def _overlap(one: str, other: str) -> bool:
    return one == other or ip_address(one).is_unspecified or ip_address(other).is_unspecified


def _port_problems(ports: Iterable[Port]) -> list[Problem | None]:
    wanted = list(ports)
    listeners = list(_listeners()) if wanted else []
    return [port_problem(port, listeners) for port in wanted]


def _listeners() -> Iterator[Listener]:
    for connection in psutil.net_connections("inet"):
        listens = connection.status in {psutil.CONN_LISTEN, psutil.CONN_NONE}
        if listens and connection.laddr and not connection.raddr:
            pid = connection.pid or 0
            yield Listener(connection.laddr.ip, connection.laddr.port, connection.type, pid, _process_name(pid))


def _process_name(pid: int) -> str:
    try:
        return psutil.Process(pid).name() if pid else ""
    except psutil.NoSuchProcess:
        return "a process that just ended"


def _disk_problems(*, fresh: bool) -> Iterator[Problem | None]:
    folders = {_existing(folder).stat().st_dev: folder for folder in (paths.STATE.parent, paths.cache())}
    for folder in folders.values():
        yield _disk_problem(folder, fresh=fresh)


def _disk_problem(folder: Path, *, fresh: bool) -> Problem | None:
    return disk_problem(folder, shutil.disk_usage(_existing(folder)).free, fresh=fresh)


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.exists())


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except FileNotFoundError:
        return ""


def _tried(*argv: str) -> tuple[int, str]:
    done = run(*argv, check=False)
    return done.returncode, done.stderr


def _try_overlay() -> tuple[int, str]:
    with tempfile.TemporaryDirectory(dir=paths.STATE.parent, prefix="mpirt-probe-") as folder:
        parts = {name: Path(folder, name) for name in ("lower", "upper", "work", "merged")}
        for part in parts.values():
            part.mkdir()
        options = f"lowerdir={parts['lower']},upperdir={parts['upper']},workdir={parts['work']}"
        mount = ("mount", "-t", "overlay", "overlay", "-o", options, str(parts["merged"]))
        return _tried("unshare", "--mount", *mount)
