"""
Where the test cluster keeps things.

A cluster owns fixed names (bridge, namespaces, cgroups), so its state is at a fixed place too, whatever checkout
it is driven from. MPIRT_TEST_CLUSTER=2 is another one beside the first, with names of its own: tests that break
their cluster have it for themselves. What is expensive to make is in the user's cache.
"""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

OWN_CLUSTER = "MPIRT_TEST_KUBECONFIG"
"""The variable that names the kubeconfig of a cluster that the user has; tests use that one then."""
CLUSTER = "MPIRT_TEST_CLUSTER"
"""The variable that names one of ours by its number; the first without it."""
NUMBER = int(os.environ.get(CLUSTER) or 1)
IS_FIRST = NUMBER == 1

_FIRST = "mpirt-kube"
_NAMES = {1: _FIRST, 2: f"{_FIRST}-2", 3: f"{_FIRST}-3"}
NAME = _NAMES[NUMBER]
SUFFIX = NAME.removeprefix(_FIRST)
"""What tells its names from those of the first."""

KUBECONFIG = PROJECT / ".kube" / f"config{SUFFIX}"

STATES = tuple(Path("/var/lib", name) for name in _NAMES.values())
"""Where each cluster that may be on the machine writes, the first one's first."""

# Everything the running cluster writes: etcd's data, node roots, logs, pid files.
STATE = Path("/var/lib", NAME)

# Sockets and runtime state, gone with a reboot.
RUN = Path("/run", NAME)

LOGS = STATE / "logs"


def cache() -> Path:
    """Binaries, sources and images, each under a name that holds the key of its recipe."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mpirt-kube"
