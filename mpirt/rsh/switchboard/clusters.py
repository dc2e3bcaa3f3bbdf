"""
The clusters that agents mean, by their environment; and what is asked about their pods.

Owns: one Dialer for each, with its credentials and its TLS context, for all who mean the same. Files that are
named there may be changed: then it is another one. Of the questions of mpirt-discover: the interface of what makes
hosts of pods, which mpirt/cli/switchboard.py hands in, because this package and mpirt/discover do not know each
other; and the rule that any doubt is a refusal: mpirt-discover then asks the API server itself.
"""

from __future__ import annotations

import os
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpirt.errors import MpirtError
from mpirt.kubeapi.access.credentials import StoredCredentials
from mpirt.kubeapi.access.endpoint import Endpoint, find_endpoint
from mpirt.kubeapi.request.answers import ApiError
from mpirt.kubeapi.request.dial import Dialer
from mpirt.rsh.switchboard import frames
from mpirt.rsh.switchboard.gate import Gate
from mpirt.rsh.switchboard.log import complain_of
from mpirt.rsh.switchboard.status import WatchStatus
from mpirt.rsh.watches.jobpods import NotKnown, given_scope
from mpirt.rsh.watches.loop import Loop
from mpirt.rsh.watches.podhub import PodHub

if TYPE_CHECKING:
    from mpirt.objects import Body
    from mpirt.rsh.watches.jobpods import HearPods, Keep

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

    def __init__(self, endpoint: Endpoint, loop: Loop) -> None:
        self.dialer = Dialer(endpoint)
        self.gate = Gate(time.monotonic)
        self._loop = loop
        self._hubs: dict[tuple[str, str | None], PodHub] = {}

    def refused(self, error: MpirtError) -> None:
        """It has refused a command. If it asks for a pause, the others wait without asking."""
        if not isinstance(error, ApiError) or error.failure.status != _TOO_MANY_REQUESTS:
            return
        if error.failure.retry_after:
            self.gate.pause(min(error.failure.retry_after, _LONGEST_PAUSE))
            self._loop.add_clock(self.gate, self.gate.let_in, group=self)

    def hub(self, namespace: str, environ: Mapping[str, str]) -> PodHub:
        """The one watch on the pods of a job."""
        selector = given_scope(environ)
        key = (namespace, selector)
        if key not in self._hubs:
            self._hubs[key] = PodHub(self._loop, self.dialer, namespace, selector, jitter=random.random)
        return self._hubs[key]

    def ask(self, namespace: str, selectors: Sequence[str], keep: Keep, hear: HearPods) -> None:
        """Give the pods that label selectors find, or why these aren't known, later. Raises NotKnown."""
        for (watched, _), hub in self._hubs.items():
            if watched == namespace and hub.may_know(selectors):
                hub.ask(selectors, keep, hear)
                return
        raise NotKnown("no watch covers these pods")

    def watches(self) -> list[WatchStatus]:
        """How its watches are."""
        return [
            WatchStatus(namespace, hub.selector or "", hub.state, hub.followed)
            for (namespace, _), hub in self._hubs.items()
        ]


class Clusters:
    """Those that were asked for."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
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
            found = self._known[key] = Cluster(endpoint, self._loop)
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

    def watches(self) -> list[WatchStatus]:
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


@dataclass(frozen=True, slots=True)
class Question:
    """What one call of mpirt-discover asks for."""

    namespace: str
    """Empty: that of the cluster's configuration."""
    selectors: Sequence[str]
    answer: Callable[[Sequence[Any], str], bytes]
    """The payload of DISCOVERED, from what is kept of these pods, and their namespace. Raises NotKnown."""


class Discovery(ABC):
    """What makes hosts of pods."""

    @abstractmethod
    def keep(self, pod: Body) -> Any:
        """What is kept of a pod that is watched."""

    @abstractmethod
    def question(self, words: Sequence[str], environ: Mapping[str, str], pid: int) -> Question:
        """Read the command line of the process `pid`. Raises NotKnown."""


def ask(discovery: Discovery, clusters: Clusters, payload: bytes, pid: int, say: Callable[[bytes], None]) -> None:
    """
    Answer a DISCOVER_REQUEST, now or when all that has come on the watch is read. `say` gets the payload.

    Raises PeerError.
    """
    words, environ = frames.read_discover_request(payload)

    def begin() -> None:
        question = discovery.question(words, environ, pid)
        cluster = clusters.known(environ)
        namespace = question.namespace or cluster.dialer.endpoint.namespace

        def answer(pods: Sequence[Any] | NotKnown) -> None:
            if isinstance(pods, NotKnown):
                raise pods
            say(question.answer(pods, namespace))

        cluster.ask(
            namespace, question.selectors, discovery.keep, lambda pods: _guarded(lambda: answer(pods), say)
        )

    _guarded(begin, say)


def _guarded(act: Callable[[], None], say: Callable[[bytes], None]) -> None:
    """An error in one call must not end the commands."""
    try:
        act()
    except NotKnown as error:
        say(frames.refused(str(error)))
    except Exception as error:  # noqa: BLE001  the API server's answer is as good
        complain_of(error)
        say(frames.refused("internal error in the switchboard"))
