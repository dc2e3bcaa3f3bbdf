"""
The clusters that agents mean, by their environment.

Owns: one Dialer for each, with its credentials and its TLS context, for all who mean the same. Files that are
named there may be changed: then it is another one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mpirt.errors import MpirtError
from mpirt.kubeapi.dial import Dialer
from mpirt.kubeapi.endpoint import Endpoint, find_endpoint

# What find_endpoint and a credential plugin go by, as far as it differs among the agents of a launcher.
_VARIABLES = (
    "KUBECONFIG", "HOME", "MPIRT_CONTEXT", "PATH", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
    "KUBERNETES_SERVICE_PORT_HTTPS", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy",
)  # fmt: skip
# A launcher has one; people's own machines a few.
_MOST = 32

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API server, and who we are to it."""

    endpoint: Endpoint
    dialer: Dialer


@dataclass(slots=True)
class Clusters:
    """Those that were asked for."""

    _known: dict[_Key, Cluster] = field(default_factory=dict)

    def find(self, environ: Mapping[str, str], context: str) -> Cluster:
        """The cluster of an agent. Raises what find_endpoint() does."""
        key = _key(environ, context)
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.pop(next(iter(self._known)))
            endpoint = find_endpoint(environ, context=context)
            self._known[key] = Cluster(endpoint, Dialer(endpoint))
        return self._known[key]


class NotHere(MpirtError):
    """This agent's cluster can be found by the agent itself only; why."""


def check(environ: Mapping[str, str]) -> None:
    """Refuse what would mean another file here than where the agent is. Raises NotHere."""
    relative = [path for path in _paths(environ) if not Path(path).is_absolute()]
    if relative:
        raise NotHere(f"KUBECONFIG={relative[0]} is relative to the agent's folder")


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
