"""
What the controller's pods say of themselves: /metrics, /healthz, /readyz.

Owns: asking for a page, by way of the API server, which reaches pods in any cluster, and what is read in it. The
controller makes no request of its own for a page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.e2e.controller.deployed import Deployed
from tests.kube.wait import until

_PORT = 8080
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


def page(controller: Deployed, pod: str, path: str) -> str:
    """What is answered, if that is good."""
    where = f"/api/v1/namespaces/{controller.namespace.name}/pods/{pod}:{_PORT}/proxy{path}"
    return controller.namespace.kubectl("get", "--raw", where).stdout


def scrape(controller: Deployed, pod: str) -> Scrape:
    return parse(page(controller, pod, "/metrics"))


def parse(text: str) -> Scrape:
    """What stands on such a page."""
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return Scrape(tuple(samples))


class Rest:
    """For how long all replicas together have asked for nothing, as far as somebody has looked."""

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


def requests_of(controller: Deployed, pods: Sequence[str]) -> int:
    """What these pods have asked for so far, watches and leases aside."""
    return sum(scrape(controller, pod).requests() for pod in pods)
