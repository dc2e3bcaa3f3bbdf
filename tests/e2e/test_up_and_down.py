"""The cluster comes, stays as it is, and goes without a trace. Times are printed."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from testbed.ground import Ground
from testbed.kube import cgroups, daemons, layout, paths
from testbed.kube.shell import output

# These tests take the cluster away, and what another one starts meanwhile would count as theirs.
pytestmark = pytest.mark.quiet

_STARTERS = {"kube-proxy", "kube-router"}
_OF_A_RUN = "/pytest-of-"


def test_down_leaves_nothing_of_what_up_made(own_cluster: Ground) -> None:
    kube("down")
    before = traces()

    times = {"up": kube("up"), "up again": kube("up"), "down": kube("down")}
    after = traces()
    kube("up")

    print("\n" + ", ".join(f"{what}: {seconds:.1f} s" for what, seconds in times.items()))
    assert after == before


def test_the_next_up_replaces_the_cluster_of_a_killed_one(own_cluster: Ground) -> None:
    kube("down")
    before = traces()
    with subprocess.Popen(_argv("up"), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        process.kill()
    assert "control plane" in line

    kube("up")

    assert own_cluster.kubectl.ready_nodes() == {"node-1", "node-2"}
    kube("down")
    assert traces() == before
    kube("up")


def test_up_on_a_running_cluster_changes_nothing(own_cluster: Ground) -> None:
    kube("up")
    before = traces()

    kube("up")

    assert traces() == before


def kube(*words: str) -> float:
    """Run the command line, and return the seconds that it took."""
    began = time.monotonic()
    subprocess.run(_argv(*words), check=True, timeout=240)
    return time.monotonic() - began


def traces() -> dict[str, list[str]]:
    """All that a cluster could leave behind on a machine, as it is now."""
    rules = [line for line in output("iptables-save").splitlines() if line.startswith(("-", ":"))]
    return {
        "processes": sorted(_processes()),
        "mounts": sorted(line.split()[4] for line in _lines("/proc/self/mountinfo")),
        "namespaces": sorted(_namespaces()),
        "links": sorted(link.name for link in Path("/sys/class/net").iterdir()),
        "routes": sorted(output("ip", "route", "show", "table", "all").splitlines()),
        # Counters and the empty built-in chains that any use of iptables makes are no traces.
        "rules": sorted(line for line in rules if " ACCEPT [" not in line),
        "control groups": sorted(str(folder) for folder in cgroups.leftovers()),
        "forwarding": _lines("/proc/sys/net/ipv4/ip_forward"),
    }


def _argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "testbed.kube", *words]


def _processes() -> list[str]:
    """
    Processes that belong to a cluster: by their mark, their control group or the files they name.

    Other programs start and end on a machine while a test runs, so not every process counts. Nor do nft, iptables
    and ipset, which kube-proxy and kube-router start every now and then; without their parents they would. Nor do
    those that name a folder of a pytest run: they are of a control plane that tests/api has meanwhile.
    """
    found = [str(pid) for pid in daemons.marked() if _parent_of(pid) not in _STARTERS]
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_text() + (folder / "cgroup").read_text()
            named = any(name in words for name in (str(paths.STATE), str(paths.cache()), layout.CGROUP))
            if named and _OF_A_RUN not in words and _parent_of(int(folder.name)) not in _STARTERS:
                found.append(folder.name)
    return found


def _parent_of(pid: int) -> str:
    """The name of the parent's program; nothing if the process is gone."""
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid).parent()
        return parent.name() if parent is not None else ""
    return ""


def _namespaces() -> set[str]:
    """Named network namespaces, and the network and mount namespaces that any process is in."""
    found = set(output("ip", "netns", "list").split())
    for folder in Path("/proc").glob("[0-9]*/ns"):
        with suppress(OSError):
            found |= {str((folder / kind).readlink()) for kind in ("net", "mnt")}
    return found


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
