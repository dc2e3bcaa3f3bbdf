"""
Which kinds of objects there are on this cluster, of those that CRDs define.

Owns: the answer for each kind, read from its informer. Any of the CRDs may be missing, serve other versions, or be
broken, and comes or changes at any time: none of that holds up the other kinds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mpirt.controller.cluster.informer import Informer

# A failed watch is repeated every 15 s at the latest, and API servers are restarted within a minute.
_LASTING = 60.0


class Availability:
    """The kinds of CRDs. Every method may be called from any thread."""

    def __init__(self, informers: Iterable[Informer], jobs: Collection[str], others: Collection[str]) -> None:
        """`jobs`: the kinds of jobs; `others`: further kinds, which jobs need."""
        kinds = {*jobs, *others}
        self._informers = {each.resource.kind: each for each in informers if each.resource.kind in kinds}
        self._jobs = tuple(jobs)

    def table(self) -> dict[str, bool]:
        """Return for each kind whether its objects are known and acted upon."""
        return {kind: each.synced.is_set() and not each.is_missing for kind, each in self._informers.items()}

    def jobs(self) -> list[str]:
        """Return the kinds of jobs that are acted upon."""
        table = self.table()
        return [kind for kind in self._jobs if table[kind]]

    def missing(self) -> list[str]:
        """Return why there are no objects of some kinds."""
        return [each.problem for each in self._informers.values() if each.is_missing]

    def is_idle(self) -> bool:
        """Whether there is no kind of job at all."""
        return all(self._informers[kind].is_missing for kind in self._jobs)

    def are_listed(self, kinds: Iterable[str]) -> bool:
        """Whether all objects of these kinds are known; of a missing kind there are none."""
        return all(self._informers[kind].synced.is_set() for kind in kinds)

    def holds_up(self, informer: Informer) -> bool:
        """Whether nothing can be done until this informer has listed its kind."""
        is_broken = informer.resource.kind in self._informers and informer.problem
        return not (informer.synced.is_set() or is_broken)


def lasting_failures(informers: Iterable[Informer]) -> list[str]:
    """Return which kinds could be read once, and for a while can't be any more, with the reason."""
    failing = [(each, each.failing_for()) for each in informers if each.synced.is_set()]
    return [
        f"{each.resource.plural} could not be listed or watched for {seconds:.0f} s: {each.problem}"
        for each, seconds in failing
        if seconds > _LASTING
    ]
