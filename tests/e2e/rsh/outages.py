"""
Outages: what happens to a cluster while a job runs, and is none of the job's business.

Owns: what they are, and how each begins and ends. How long one lasts is the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from testbed.ground import Faults


@dataclass(frozen=True, slots=True)
class Outage:
    """Something that is away for so many seconds."""

    name: str
    seconds: float
    begin: Callable[[], None]
    end: Callable[[], None]

    def __call__(self) -> None:
        """Let it happen, from beginning to end."""
        with self.lasting():
            # Nothing tells of time that has to pass.
            time.sleep(self.seconds)

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """While the block runs."""
        self.begin()
        try:
            yield
        finally:
            self.end()


def every(
    fault: Faults, nodes: Iterable[str], *, away: float, frozen: float, dropped: float, short: float = 3.0
) -> list[Outage]:
    """One of each kind: of the API server for so many seconds, of the nodes' own programs for a `short` time."""
    nodes = sorted(nodes)
    return [
        Outage("API server killed", away, partial(fault.kill, "apiserver"), partial(fault.start, "apiserver")),
        Outage("API server frozen", frozen, partial(fault.freeze, "apiserver"), partial(fault.thaw, "apiserver")),
        Outage("packets to it dropped", dropped, fault.drop, fault.undrop),
        # As long as it takes until every connection had something to say, a watch's too.
        Outage("connections to it reset", 2 * short, fault.reset, fault.undrop),
        *(_of_nodes(fault, kind, nodes, short) for kind in ("kubelet", "containerd")),
    ]


def _of_nodes(fault: Faults, kind: str, nodes: list[str], seconds: float) -> Outage:
    def each(what: Callable[[str], None]) -> None:
        for node in nodes:
            what(f"{kind}:{node}")

    return Outage(f"{kind}s restarted", seconds, partial(each, fault.kill), partial(each, fault.start))
