"""
Who held the lease when, and who wrote when, by what passed through the proxy.

Owns: the comparison. Processes are told apart by the replicas that they are of: of two of one replica
the first is dead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.api.apiproxy import Write

# Who can't renew stops acting after as many seconds.
DEADLINE = 8.0


def is_for_job(write: Write) -> bool:
    return write.kind != "leases"


def made_twice(writes: Iterable[Write]) -> list[str]:
    """Objects that the API server has made more than once."""
    made = Counter(f"{write.kind} {write.name}" for write in writes if write.made_it)
    return [name for name, count in made.items() if count > 1]


def intruders(writes: Sequence[Write]) -> list[str]:
    """Writes of processes that did not hold the lease when they wrote."""
    found, holder, since = list[str](), "nobody", float("-inf")
    for write in writes:
        if is_for_job(write):
            if write.sender != holder or write.at - since > DEADLINE:
                found.append(f"{write} {write.name} by {write.sender}, {write.at - since:.1f} s after {holder}")
        elif write.is_good:
            holder = write.sender if write.content["spec"]["holderIdentity"] else "nobody"
            since = write.at
    return found
