"""Controllers that speak to the API server through a proxy, each in a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.api import controllers
from tests.api.apiproxy import ApiProxy
from tests.api.controllers import Controller
from tests.e2e.ground import Ground, Namespace
from tests.plane.plane import Plane

_REPLICAS = 2


@dataclass(frozen=True)
class Bed:
    """One controller: two replicas, as its Deployment has them."""

    controller: Controller
    proxy: ApiProxy

    @property
    def namespace(self) -> Namespace:
        return self.controller.namespace


@contextmanager
def beds(plane: Plane, cluster: Ground, folder: Path, count: int) -> Iterator[list[Bed]]:
    """So many, started side by side, and gone after the block: a proxy ends when nobody can connect to it."""
    with ExitStack() as stack:
        proxies = [ApiProxy(plane.site) for _ in range(count)]
        for proxy in proxies:
            proxy.start()
            stack.callback(proxy.stop)
        with ThreadPoolExecutor(count) as pool:
            made = list(pool.map(lambda proxy: _bed(plane, cluster, folder, proxy), proxies))
            try:
                yield made
            finally:
                list(pool.map(lambda bed: bed.controller.remove(), made))


def _bed(plane: Plane, cluster: Ground, folder: Path, proxy: ApiProxy) -> Bed:
    urls = [proxy.open(name) for name in controllers.names(_REPLICAS)]
    return Bed(controllers.install(plane, cluster, folder, replicas=_REPLICAS, urls=urls), proxy)
