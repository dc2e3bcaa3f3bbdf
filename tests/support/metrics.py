"""
What a page of /metrics of the controller says.

Owns: what is read in it. Fetches nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from testbed.kube.wait import until

_BETWEEN_LOOKS = 1.0
_CALLS = "mpirt_controller_api_calls_total"
_WRITES = frozenset({"create", "patch", "update", "delete"})


@dataclass(frozen=True)
class Scrape:
    """A pod's /metrics at one moment."""

    samples: tuple[Sample, ...]

    def names(self) -> set[str]:
        return {each.name for each in self.samples}

    def value(self, name: str, **labels: str) -> float:
        """The sum of what has that name and these labels; 0 if nothing has."""
        return sum(
            each.value for each in self.samples if each.name == name and labels.items() <= each.labels.items()
        )

    def writes(self) -> int:
        """Requests that write, with dry runs and without those for the lease."""
        return int(sum(each.value for each in self._calls() if each.labels["verb"] in _WRITES))

    def requests(self) -> int:
        """Requests of all kinds but watches, without those for the lease."""
        return int(sum(each.value for each in self._calls() if each.labels["verb"] != "watch"))

    def _calls(self) -> Iterable[Sample]:
        return (each for each in self.samples if each.name == _CALLS and each.labels["resource"] != "leases")


def parse(text: str) -> Scrape:
    """What stands on such a page."""
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return Scrape(tuple(samples))


class Rest:
    """For how long all replicas together have asked for nothing, as far as it has been checked."""

    def __init__(self, ask: Callable[[], int]) -> None:
        self._ask = ask
        self._requests = -1
        self._since = self._looked = 0.0

    def seconds(self) -> float:
        """Look, once a second at most, and say since when the number of requests has been what it is."""
        due = self._looked + _BETWEEN_LOOKS
        until(lambda: time.monotonic() >= due, within=2 * _BETWEEN_LOOKS, what="the next look")
        self._looked = time.monotonic()
        requests = self._ask()
        if requests != self._requests:
            self._requests, self._since = requests, time.monotonic()
        return self._looked - self._since
