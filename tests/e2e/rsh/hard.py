"""A command that is hard to end: it ignores TERM, and has children, one of them in a session of its own."""

from __future__ import annotations

from typing import Any

from tests.e2e.ground import Namespace
from tests.e2e.rsh import launcher

SECONDS = "54321"
"""Its processes are found by this time, for which nothing else sleeps."""

COMMAND = (
    f"trap '' TERM INT HUP; sh -c 'trap \"\" TERM; sleep {SECONDS}; sleep {SECONDS}' & "
    f"echo running; sleep {SECONDS}"
)


def is_running(namespace: Namespace, pod: str) -> bool:
    """Whether a process of it is in the pod."""
    return f"sleep {SECONDS}" in namespace.kubectl.execute(pod, "ps", "-o", "args")


def start_in_launcher(namespace: Namespace, pod: str, **spec: Any) -> None:
    """Start it through an agent in a launcher pod, in the background there; `spec` is of that pod."""
    name = launcher.start(namespace, "openmpi4", workers=[pod], **spec)
    line = f"nohup mpirt-rsh {pod} {_quoted(COMMAND)} > /tmp/said 2>&1 < /dev/null &"
    namespace.kubectl.execute(name, "sh", "-c", line)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
