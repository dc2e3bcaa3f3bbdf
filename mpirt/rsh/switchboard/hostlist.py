"""
The hosts of a launcher, by the list that it reads.

Owns: where that list is, by the launcher's environment, and which names are in it: pods of these names will exist,
if they do not yet. The list of a job changes when the job is scaled.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mpirt import launchenv, names
from mpirt.errors import SpecError
from mpirt.hosts import parse_hosts

_DEFAULT = f"{names.MPI_FOLDER}/{names.HOSTFILE}"


def has_host(environ: Mapping[str, str], pod: str) -> bool:
    """Whether the list names the pod. A list that can't be read names none."""
    path = next(filter(None, map(environ.get, launchenv.HOSTFILES)), _DEFAULT)
    with suppress(OSError, ValueError, SpecError):
        found = Path(path).stat()
        return pod in _hosts(path, found.st_mtime_ns, found.st_size)
    return False


@functools.lru_cache(maxsize=8)
def _hosts(path: str, _changed: int, _size: int) -> frozenset[str]:
    """The names without their domains, as launchers hand them to an agent."""
    return frozenset(host.name.partition(".")[0] for host in parse_hosts(Path(path).read_text(encoding="utf-8")))
