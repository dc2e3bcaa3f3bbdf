"""
What is observed of a GPUTask: its pod, or what is in the pod's way.

Owns: whose a pod is. It is the task's if, and only if, the uid in its controller reference is the task's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mpirt.controller.gputasks.spec import GPU_TASK
from mpirt.controller.model import kinds
from mpirt.controller.model.reading import Body, table, text
from mpirt.controller.model.spec import Owner
from mpirt.controller.observed.facts import Live
from mpirt.controller.observed.observe import Cached, DepartedPods, read_live
from mpirt.controller.observed.pods import Pod, evictions, read_pod


@dataclass(frozen=True, slots=True)
class Seen:
    """The pods of a task's name at one moment."""

    pod: Pod | None = None
    """The task's pod."""
    version: str = ""
    """Its resourceVersion."""
    departed: Pod | None = None
    """The task's last pod, if that went a moment ago and was being deleted or had ended; None while it has one."""
    other: Live | None = None
    """A pod that has the name and belongs to somebody else."""

    @property
    def last(self) -> Pod | None:
        """The task's pod, or the one that it had a moment ago."""
        return self.pod or self.departed

    @property
    def is_leftover(self) -> bool:
        """Whether the pod in the way will go by itself: it is being deleted, or of an earlier task of the name."""
        return self.other is not None and (
            self.other.deleting or self.other.owner_name == f"{GPU_TASK} {self.other.name}"
        )


def see(owner: Owner, cached: Cached, departed: DepartedPods) -> Seen:
    """Return what is known about the task's pod."""
    evicted = evictions(cached.get(kinds.EVICTION, ()))
    found = [body for body in cached.get(kinds.POD, ()) if _has_name(body, owner)]
    mine = next((body for body in found if _is_of(body, owner)), None)
    other = next((read_live(kinds.POD, body) for body in found if not _is_of(body, owner)), None)
    return Seen(
        pod=None if mine is None else read_pod(mine, evicted=evicted),
        version="" if mine is None else text(table(mine, "metadata"), "resourceVersion"),
        departed=_departed(owner, departed, evicted) if mine is None else None,
        other=other if mine is None else None,
    )


def _departed(owner: Owner, departed: DepartedPods, evicted: Mapping[str, str]) -> Pod | None:
    gone: list[tuple[Body, datetime]] = [(body, at) for body, at in departed if _is_of(body, owner)]
    if not gone:
        return None
    body, at = max(gone, key=lambda each: each[1])
    pod = read_pod(body, evicted=evicted, gone=at)
    return pod if pod.deleted is not None or pod.is_over else None


def _has_name(body: Body, owner: Owner) -> bool:
    return text(table(body, "metadata"), "name") == owner.key.name


def _is_of(body: Body, owner: Owner) -> bool:
    return read_live(kinds.POD, body).owner == owner.uid
