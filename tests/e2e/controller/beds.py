"""Controllers that speak to the API server through a proxy, each in a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.controller import deployed
from tests.e2e.controller.apiproxy import ApiProxy
from tests.e2e.controller.deployed import Deployed
from tests.e2e.ground import Ground, Namespace
from tests.kube.kubectl import is_ready
from tests.kube.wait import until

_REPLICAS = 2
_WHOLE_WITHIN = 120.0


@dataclass(frozen=True)
class Bed:
    """One controller: two replicas, as its Deployment has them."""

    controller: Deployed
    proxy: ApiProxy

    @property
    def namespace(self) -> Namespace:
        return self.controller.namespace

    def wait_until_whole(self) -> None:
        """Wait until both replicas are Ready: after several ends the kubelet takes its time to start one again."""
        until(
            lambda: sum(map(is_ready, self.controller.all_pods())) == _REPLICAS,
            within=_WHOLE_WITHIN,
            what="two replicas that are Ready",
        )


@contextmanager
def beds(cluster: Ground, folder: Path, count: int) -> Iterator[list[Bed]]:
    """So many, installed side by side, and gone after the block: a proxy ends when nobody can connect to it."""
    with ExitStack() as stack:
        proxies = [ApiProxy() for _ in range(count)]
        for proxy in proxies:
            proxy.start()
            stack.callback(proxy.stop)
        with ThreadPoolExecutor(count) as pool:
            made = list(pool.map(lambda proxy: _bed(cluster, folder, proxy), proxies))
            try:
                yield made
            finally:
                list(pool.map(_leave, made))


def _bed(cluster: Ground, folder: Path, proxy: ApiProxy) -> Bed:
    return Bed(deployed.install(cluster, folder, environment=proxy.environment), proxy)


def _leave(bed: Bed) -> None:
    bed.controller.remove()
    until(lambda: not bed.controller.all_pods(), within=_WHOLE_WITHIN, what="the end of the controller's pods")
