"""A command that is hard to end: it ignores TERM, and has children, one of them in a session of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.ground import Namespace
from tests.e2e.rsh import launcher

SECONDS = "54321"
"""Its processes are found by this time, for which nothing else sleeps."""

COMMAND = (
    f"trap '' TERM INT HUP; sh -c 'trap \"\" TERM; sleep {SECONDS}; sleep {SECONDS}' & "
    f"echo running; sleep {SECONDS}"
)


SHORT_LEASE = {"MPIRT_LEASE": "4", "MPIRT_GRACE": "1"}
"""An agent that is gone leaves its command for so long."""
SHORT_LEASE_SECONDS = 5.0
NOTHING: Mapping[str, str] = {}


def is_running(namespace: Namespace, pod: str) -> bool:
    """Whether a process of it is in the pod."""
    return f"sleep {SECONDS}" in namespace.kubectl.execute(pod, "ps", "-o", "args")


def start_in_launcher(
    namespace: Namespace, pod: str, *, variables: Mapping[str, str] = NOTHING, **spec: Any
) -> str:
    """Start it through an agent in a launcher pod, in the background there; `spec` is of that pod. Its name."""
    name = launcher.start(namespace, "openmpi4", workers=[pod], **spec)
    setting = "".join(f"{key}={text} " for key, text in variables.items())
    line = f"{setting}nohup mpirt-rsh {pod} {_quoted(COMMAND)} > /tmp/said 2>&1 < /dev/null &"
    namespace.kubectl.execute(name, "sh", "-c", line)
    return name


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
