"""
Leader election: which replica may hold the Lease, and what it writes into it.

Owns: the durations and the decision. No I/O, no clock: cluster/lease.py has both.

A holder that can't renew stops writing `deadline` after it began its last successful renewal; others wait
`duration` from when they last saw the Lease change, by their own clock. Clocks of different machines are never
compared. No two replicas write at a time, as long as a write takes less than the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mpirt.controller.model.reading import Body, number, table, text, version_of
from mpirt.errors import SpecError

_LONGEST_WRITE = 5.0
# The share of the time from the leader's deadline until another replica may take the lease. The rest is slack.
_SHARE_OF_A_WRITE = 5 / 6
# How much longer than the others the holder waits. It loses nothing by that: it repeats a failed renewal soon.
_HOLDER_WAITS = 1.5


@dataclass(frozen=True, slots=True)
class Terms:
    """The durations of the lease, in seconds."""

    duration: int = 14
    deadline: float = 8.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry < self.deadline < self.duration:
            raise SpecError("lease", "retry, deadline and duration must each be longer than the one before")

    @property
    def renewal(self) -> float:
        """After how long the holder renews the lease."""
        return min(self.retry * _HOLDER_WAITS, self.deadline / 2)

    @property
    def write_within(self) -> float:
        """How long a write may take: one that began before the deadline ends before another replica may write."""
        return min(_LONGEST_WRITE, (self.duration - self.deadline) * _SHARE_OF_A_WRITE)


@dataclass(frozen=True, slots=True)
class Seen:
    """The Lease as it was when this process last saw it change."""

    version: str
    holder: str
    duration: int
    at: float
    """When that was, by this process's own clock."""


def seen(body: Body, before: Seen | None, now: float, terms: Terms) -> Seen:
    """
    Return what the Lease says, and since when; `before` if its resourceVersion has not changed.

    Without a valid duration it has ours: a holder does not lose it at once.
    """
    version = version_of(body)
    if before is not None and before.version == version:
        return before
    spec = table(body, "spec")
    duration = number(spec, "leaseDurationSeconds")
    return Seen(version, text(spec, "holderIdentity"), duration if duration > 0 else terms.duration, now)


def is_lease(body: Body) -> bool:
    """Whether an answer is an object, and not the page of a proxy."""
    return version_of(body) != ""


def is_free(lease: Seen, identity: str, now: float) -> bool:
    """Whether this identity holds the Lease or may take it."""
    return lease.holder in ("", identity) or now >= lease.at + lease.duration


def fresh(name: str, namespace: str, identity: str, terms: Terms, when: datetime) -> dict[str, Any]:
    """Return a new Lease, held by this identity."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": terms.duration,
            "acquireTime": _micro(when),
            "renewTime": _micro(when),
            "leaseTransitions": 0,
        },
    }


def held(body: Body, identity: str, terms: Terms, when: datetime) -> dict[str, Any]:
    """Return the Lease, taken or renewed. It keeps its resourceVersion, so a write in between is a conflict."""
    spec = table(body, "spec")
    mine = text(spec, "holderIdentity") == identity
    taken = {} if mine else {"acquireTime": _micro(when), "leaseTransitions": number(spec, "leaseTransitions") + 1}
    renewed = {"holderIdentity": identity, "leaseDurationSeconds": terms.duration, "renewTime": _micro(when)}
    return {**body, "spec": {**spec, **taken, **renewed}}


def released(body: Body, when: datetime) -> dict[str, Any]:
    """Return the Lease without a holder, so that another replica can take it at once."""
    spec = {**table(body, "spec"), "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _micro(when)}
    return {**body, "spec": spec}


def _micro(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
