"""
Where the test cluster keeps things.

One cluster runs on a machine at a time: it owns fixed names (bridge, namespaces, cgroups), so its state is at
a fixed place too, whatever checkout it is driven from. What is expensive to make is in the user's cache.
"""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

KUBECONFIG = PROJECT / ".kube" / "config"

# Everything the running cluster writes: etcd's data, node roots, logs, pid files.
STATE = Path("/var/lib/mpirt-kube")

# Sockets and runtime state, gone with a reboot.
RUN = Path("/run/mpirt-kube")

LOGS = STATE / "logs"


def cache() -> Path:
    """Binaries, sources and images, each under a name that holds the key of its recipe."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mpirt-kube"
