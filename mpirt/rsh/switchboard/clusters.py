"""
The clusters that agents mean, by their environment.

Owns: one Dialer for each, with its credentials and its TLS context, for all who mean the same. Files that are
named there may be changed: then it is another one.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpirt.errors import MpirtError
from mpirt.kubeapi.access.credentials import StoredCredentials
from mpirt.kubeapi.access.endpoint import Endpoint, find_endpoint
from mpirt.kubeapi.request.answers import ApiError
from mpirt.kubeapi.request.dial import Dialer
from mpirt.rsh.pod.lookup import given_scope
from mpirt.rsh.ports.loop import FOR_EVER, Loop
from mpirt.rsh.switchboard.gate import Gate
from mpirt.rsh.watches.followers import Watch
from mpirt.rsh.watches.podhub import PodHub
from mpirt.rsh.watches.podquestions import NotKnown, keep_all

if TYPE_CHECKING:
    from mpirt.objects import Body
    from mpirt.rsh.watches.podquestions import Hear

# What find_endpoint goes by, as far as it differs among the programs of a launcher.
_VARIABLES = (
    "KUBECONFIG", "HOME", "MPIRT_CONTEXT", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
    "KUBERNETES_SERVICE_PORT_HTTPS", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy",
)  # fmt: skip
# A launcher has one; people's own machines a few.
_MOST = 32
# An API server that asks for more time than this is asked again all the same: the launchers' own time runs.
_LONGEST_PAUSE = 30.0
_TOO_MANY_REQUESTS = 429

_Key = tuple[object, ...]


class Cluster:
    """An API server, who we are to it, how many dial there, and what it tells of pods."""

    def __init__(self, endpoint: Endpoint, loop: Loop, keep: Callable[[Body], Any] = keep_all) -> None:
        """`keep`: see KeptPods."""
        self._keep = keep
        self.dialer = Dialer(endpoint)
        self.gate = Gate()
        self._loop = loop
        self._hubs: dict[tuple[str, str | None], PodHub] = {}

    @property
    def endpoint(self) -> Endpoint:
        return self.dialer.endpoint

    def refused(self, error: MpirtError) -> None:
        """It has refused a command. If it asks for a pause, the others wait without asking."""
        if not isinstance(error, ApiError) or error.failure.status != _TOO_MANY_REQUESTS:
            return
        asked = error.failure.retry_after
        if asked:
            self.gate.pause(time.monotonic() + min(asked, _LONGEST_PAUSE))
            self._loop.add_clock(self, self._tick, group=self)

    def timeout(self) -> float:
        """In how many seconds a pause ends."""
        wake = self.gate.wake
        return FOR_EVER if wake is None else max(0.0, wake - time.monotonic())

    def _tick(self) -> None:
        self.gate.tick(time.monotonic())
        if self.gate.wake is None:
            self._loop.drop(self)

    def hub(self, namespace: str, environ: Mapping[str, str]) -> PodHub:
        """The one watch on the pods of a job."""
        selector = given_scope(environ)
        key = (namespace, selector)
        if key not in self._hubs:
            self._hubs[key] = PodHub(
                self._loop, self.dialer, namespace, selector, jitter=random.random, keep=self._keep
            )
        return self._hubs[key]

    def ask(self, namespace: str, selectors: Sequence[str], hear: Hear) -> None:
        """Give the pods that label selectors find, or why these aren't known, later. Raises NotKnown."""
        for (watched, _), hub in self._hubs.items():
            if watched == namespace and hub.may_know(selectors):
                hub.ask(selectors, hear)
                return
        raise NotKnown("no watch covers these pods")

    def watches(self) -> Iterator[Watch]:
        """How its watches are."""
        return (hub.status() for hub in self._hubs.values())


class Turn:
    """The way of one command through its cluster's gate: its session and its look-up have one turn."""

    def __init__(self, cluster: Cluster, who: object, guard: Callable[[Callable[[], None]], None]) -> None:
        """`guard` does a part of it: that may begin in the middle of another command's act."""
        self._cluster, self._who, self._guard = cluster, who, guard

    @property
    def is_awaited(self) -> bool:
        return self._cluster.gate.waits(self._who)

    def enter_first(self, begin: Callable[[], None]) -> None:
        """Begin with the command when it is its turn."""
        self._enter(begin, is_first=True)

    def enter(self, _who: object, begin: Callable[[], None]) -> None:
        self._enter(begin, is_first=False)

    def refused(self, error: MpirtError) -> None:
        self._cluster.refused(error)

    def leave(self, _who: object) -> None:
        self._cluster.gate.leave(self._who, time.monotonic())

    def _enter(self, begin: Callable[[], None], *, is_first: bool) -> None:
        self._cluster.gate.enter(self._who, lambda: self._guard(begin), time.monotonic(), is_first=is_first)


class Clusters:
    """Those that were asked for."""

    def __init__(self, loop: Loop, keep: Callable[[Body], Any] = keep_all) -> None:
        """`keep`: see KeptPods."""
        self._loop, self._keep = loop, keep
        self._known: dict[_Key, Cluster] = {}

    def find(self, environ: Mapping[str, str], context: str) -> Cluster:
        """The cluster of an agent. Raises what find_endpoint() does."""
        key = _key(environ, context)
        # A credential plugin sees all variables, and any of them may say who we are.
        found = self._known.get(key) or self._known.get((*key, frozenset(environ.items())))
        if found is None:
            endpoint = find_endpoint(environ, context=context)
            if not isinstance(endpoint.source, StoredCredentials):
                key = (*key, frozenset(environ.items()))
            if len(self._known) >= _MOST:
                self._known.pop(next(iter(self._known)))
            found = self._known[key] = Cluster(endpoint, self._loop, self._keep)
        return found

    def known(self, environ: Mapping[str, str]) -> Cluster:
        """
        The cluster of a program that asks for pods. Raises NotKnown.

        Only one to which commands are connected with the same credentials. Where a credential plugin decides on
        these, that can't be known.
        """
        relative = [path for path in _paths(environ) if not Path(path).is_absolute()]
        if relative:
            raise NotKnown(f"KUBECONFIG={relative[0]} is relative to the folder of the program that asks")
        cluster = self._known.get(_key(environ, ""))
        if cluster is None:
            raise NotKnown("no command runs in this cluster with these credentials")
        return cluster

    def watches(self) -> list[Watch]:
        """How the watches of all clusters are."""
        return [watch for cluster in self._known.values() for watch in cluster.watches()]


def located(environ: Mapping[str, str], folder: str) -> Mapping[str, str]:
    """The same with paths in KUBECONFIG that mean here what they mean in the agent's folder."""
    paths = _paths(environ)
    if all(map(os.path.isabs, paths)):
        return environ
    absolute = [str(Path(folder or "/(removed folder)", path)) for path in paths]
    return {**environ, "KUBECONFIG": os.pathsep.join(absolute)}


def _paths(environ: Mapping[str, str]) -> list[str]:
    return [path for path in environ.get("KUBECONFIG", "").split(os.pathsep) if path]


def _key(environ: Mapping[str, str], context: str) -> _Key:
    home = environ.get("HOME", "")
    files = _paths(environ) or ([f"{home}/.kube/config"] if home else [])
    return (context, *(environ.get(name) for name in _VARIABLES), *(_stamp(Path(path)) for path in files))


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
