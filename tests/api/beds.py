"""Controllers that speak to the API server through a proxy, each in a namespace of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from testbed.ground import Ground, Namespace
from testbed.plane.plane import Plane
from tests.api import controllers
from tests.api.apiproxy import ApiProxy, Hold, Where, Write
from tests.api.controllers import Controller

_REPLICAS = 2
# A machine that is busy with other tests takes minutes for what else takes seconds.
COMES_WITHIN = 600.0


@dataclass(frozen=True)
class Bed:
    """One controller, and the proxy on its way to the API server."""

    controller: Controller
    proxy: ApiProxy

    @property
    def namespace(self) -> Namespace:
        return self.controller.namespace

    def writes_for(self, name: str) -> list[Write]:
        """All writes so far for what has this name, or a name with this one in it."""
        return [write for write in self.proxy.writes() if name in write.name]

    def hold_to_kill(self, rule: Callable[[Write], bool]) -> Hold:
        """
        Hold up the answers to the writes that the rule is true of, for kill_at().

        A controller that sends one is stopped: so it does not give the write up, however long the answer takes.
        """

        def stops(write: Write) -> bool:
            if is_one := rule(write):
                self.controller.replica(write.sender).process.freeze()
            return is_one

        return self.proxy.hold(Where.AFTER, stops)

    def kill_at(self, hold: Hold) -> None:
        """Kill the controller when its write is held up, and let the write go on its way."""
        write = hold.wait(COMES_WITHIN)
        assert not write.is_left, "the controller had given the write up before it was stopped"
        # Nobody reads its answer any more. The next controller, which may send the same, is not to be stopped.
        hold.release()
        self.controller.replica(write.sender).process.kill()


@contextmanager
def beds(
    plane: Plane,
    cluster: Ground,
    folder: Path,
    count: int,
    *,
    replicas: int = _REPLICAS,
    has_lease: bool = True,
    sees_nodes: bool = False,
) -> Iterator[list[Bed]]:
    """
    So many, started side by side, and gone after the block: a proxy ends when nobody can connect to it.

    Each has two replicas, as its Deployment has them, or as many as are asked for. Without a lease the only one
    goes on as soon as it is started again. `sees_nodes`: whether they may read nodes.
    """
    program = (controllers.PROGRAM,) if has_lease else controllers.WITHOUT_A_LEASE

    def one(proxy: ApiProxy) -> Bed:
        urls = [proxy.open(name) for name in controllers.names(replicas)]
        how = {"replicas": replicas, "urls": urls, "sees_nodes": sees_nodes, "program": program}
        return Bed(controllers.install(plane, cluster, folder, **how), proxy)

    with ExitStack() as stack:
        proxies = [ApiProxy(plane.site) for _ in range(count)]
        for proxy in proxies:
            proxy.start()
            stack.callback(proxy.stop)
        with ThreadPoolExecutor(count) as pool:
            made = list(pool.map(one, proxies))
            try:
                yield made
            finally:
                list(pool.map(lambda bed: bed.controller.remove(), made))


class FreeBeds:
    """Beds that wait for their next job, which has one for itself."""

    def __init__(self, made: Iterable[Bed]) -> None:
        self._free: Queue[Bed] = Queue()
        for bed in made:
            self._free.put(bed)

    @contextmanager
    def one(self) -> Iterator[Bed]:
        """The next free one, until the end of the block."""
        bed = self._free.get()
        try:
            yield bed
        finally:
            self._free.put(bed)


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
