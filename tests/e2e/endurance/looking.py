"""
What is there when nothing runs but the commands that stay.

Owns: waiting for that, and what is in the pods then.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from functools import partial

from testbed.ground import Namespace
from tests.e2e.endurance.running import LEASE, environment
from tests.e2e.rsh import agent
from tests.e2e.rsh.remains import seen, wait_until_same

# A keeper may stay for its lease, and a shell that a runtime has left for the keeper's two minutes.
_WITHIN = 6.0 * LEASE


class Remains:
    """The pods as they are with nothing in them, and what more there is."""

    def __init__(self, namespace: Namespace, pods: Sequence[str]) -> None:
        self._namespace = namespace
        self._clean = {pod: self.seen(pod) for pod in pods}

    def seen(self, pod: str) -> Counter[str]:
        """What it has. A keeper that was come back to has its connection beside its socket, by the same name."""
        found = seen(self._namespace, pod)
        return Counter({what: 1 if what.startswith("socket ") else count for what, count in found.items()})

    def wait(self) -> int:
        """Wait until all pods are as they were; how many processes, files and sockets that is."""
        for pod, clean in self._clean.items():
            wait_until_same(clean, partial(self._after_another, pod), pod=pod, within=_WITHIN)
        return sum(clean.total() for clean in self._clean.values())

    def _after_another(self, pod: str) -> Counter[str]:
        """What it has. Where shells are left, another command follows, whose keeper ends those that are old."""
        found = self.seen(pod)
        if any(what.startswith("process (sh)") for what in found - self._clean[pod]):
            subprocess.run([agent.RSH, pod, "true"], env=environment(self._namespace), check=True)
            found = self.seen(pod)
        return found
