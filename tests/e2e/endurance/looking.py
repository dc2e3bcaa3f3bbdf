"""
What is there when nothing runs but the commands that stay.

Owns: waiting for that, and the figures of the switchboard, its agents and the pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.crowd import pss_bytes
from tests import forms
from tests.e2e.endurance.judging import Lap
from tests.e2e.endurance.running import LEASE
from tests.e2e.ground import Namespace
from tests.e2e.rsh.test_many_commands import seen
from tests.kube.errors import ClusterError
from tests.kube.wait import until

_WITHIN = 4.0 * LEASE
_KIB = 1024


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
        return sum(self._as_it_was(pod).total() for pod in self._clean)

    def _as_it_was(self, pod: str) -> Counter[str]:
        found = Counter[str]()

        def is_clean() -> bool:
            found.clear()
            found.update(self.seen(pod))
            return found == self._clean[pod]

        try:
            until(is_clean, within=_WITHIN, what=f"{pod} to be as it was")
        except ClusterError as error:
            left, gone = found - self._clean[pod], self._clean[pod] - found
            raise AssertionError(f"{pod}: left: {left}; gone: {gone}") from error
        return found


def look(lap: Lap, folder: Path, agents: Sequence[int]) -> None:
    """Note what the switchboard and these agents hold."""
    with forms.connection(folder) as lap.switchboard:
        process = Path(f"/proc/{lap.switchboard}")
        # Without this connection. Once it is closed, the switchboard may have its end of it a little longer.
        lap.descriptors = len(list((process / "fd").iterdir())) - 1
    lap.memory = pss_bytes(lap.switchboard) // _KIB
    lap.agents = sum(pss_bytes(pid) for pid in agents) // _KIB
    lap.threads = len(list((process / "task").iterdir()))
