"""
Whether the names of a job's workers fit into its objects.

Owns: the API server's limits, and how many workers a job can have with its name. A job that wants more is invalid:
otherwise an object would be rejected once there are so many, and the job could neither go on nor be scaled. Each
worker takes the same number of bytes at most, so objects with one worker and with two show how many fit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from mpirt.controller.dialects.base import Dialect
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.objectnames import MOST_WORKERS, worker_name
from mpirt.controller.model.roster import Change, Drain, Roster, Source, write_roster
from mpirt.controller.model.spec import JobSpec, Settings
from mpirt.errors import SpecError

MOST_DATA = 1024 * 1024
"""How many bytes the values in a ConfigMap may have."""
MOST_NAMES = (1536 - 256) * 1024
"""
How many bytes of a job object its workers' names may take. etcd takes 1.5 MiB in a request by default; the rest is
for the spec, the conditions and the history.
"""

# So many fit whatever their names are: each takes less than a kilobyte.
_SURELY_FIT = 500
# Names of bare workers get longer, because numbers are not used again.
_LARGEST_NUMBER = 999_999
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def with_room(dialect: Dialect, spec: JobSpec, settings: Settings) -> JobSpec:
    """Return the spec, elastic only as far as the names of its workers fit. Raises SpecError if they don't."""
    elastic = spec.workers.elastic
    if max(spec.workers.replicas, elastic.most if elastic is not None else 0) <= _SURELY_FIT:
        return spec
    most, holder = min(_limits(dialect, spec, settings))
    if spec.workers.replicas > most:
        raise SpecError(
            f"{spec.workers.template.path.removesuffix('template')}replicas",
            f"must be at most {most} with a job name of {len(spec.key.name)} characters, "
            f"got {spec.workers.replicas}: {holder} the names of all workers; "
            "a shorter metadata.name has room for more",
        )
    if elastic is None or elastic.most <= most or spec.workers.bare is None:
        return spec
    return replace(spec, workers=replace(spec.workers, elastic=replace(elastic, most=most)))


def room_for_drains(roster: Roster, running: tuple[str, ...]) -> int:
    """Return how many bytes the status has left."""
    return MOST_NAMES - _size(write_roster(roster)) - _size(running)


def size_of_drain(drain: Drain, successor: str) -> int:
    """Return how many bytes a drain adds to the status, together with its successor."""
    return _size(
        write_roster(Roster((successor,), pending=(successor,), drains=(replace(drain, after=successor),)))
    )


def _limits(dialect: Dialect, spec: JobSpec, settings: Settings) -> list[tuple[int, str]]:
    """Return how many workers there can be by each object that holds their names, and what is said of it."""
    one, two = (_with_workers(spec, count) for count in (1, 2))
    data = [_size_of_data(config_map(each, settings.keepers)) for each in (one, two)]
    # How many workers are needed is in it, too: a number with more digits than one worker's.
    more_digits = len(str(_fitting(data, MOST_DATA))) - 1
    limits = [(_fitting(data, MOST_DATA - more_digits), "one ConfigMap holds")]
    if spec.workers.bare is not None:
        status = [_size(dialect.write_status(_status(each), each.key)) for each in (one, two)]
        limits.append((_fitting(status, MOST_NAMES), "the job's status holds"))
    return limits


def _fitting(sizes: list[int], limit: int) -> int:
    """Return how many workers fit, from the sizes with one and with two of them."""
    one, two = sizes
    return 1 + (limit - one) // (two - one)


def _with_workers(spec: JobSpec, count: int) -> JobSpec:
    """Return the spec with so many workers, whose names are the longest."""
    bare = spec.workers.bare
    highest = MOST_WORKERS - 1
    if bare is not None:
        used = bare.roster.highest if bare.roster is not None else 0
        highest = max(_LARGEST_NUMBER, used)
        bare = replace(bare, roster=None)
    names = (worker_name(spec.key.name, highest),) * count
    return replace(spec, workers=replace(spec.workers, names=names, bare=bare))


def _status(spec: JobSpec) -> JobStatus:
    """Return the largest status: all workers are wanted, are there, and are about to leave."""
    names = spec.workers.names
    change = Change(Source.REPLICAS, _ANY_TIME, leaving=names)
    return JobStatus(roster=Roster(names, change=change), running=names)


def _size_of_data(body: Mapping[str, Mapping[str, str]]) -> int:
    """Return the bytes that Kubernetes counts."""
    encoded = body.get("binaryData", {}).values()
    binary = sum(len(text) // 4 * 3 - text[-2:].count("=") for text in encoded)
    return sum(len(text.encode()) for text in body["data"].values()) + binary


def _size(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":")))
