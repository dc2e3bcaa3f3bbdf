"""
What a person asks for, and the object that asks the controller for it. No I/O.

Owns: the words +2, -1, 5 and --remove, and the ScaleIn or ScaleOut that each becomes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mpirt import names
from mpirt.errors import UsageError

API_VERSION = "kai.alibabacloud.com/v1alpha1"
_WORDS = re.compile(r"([+-]?)([0-9]{1,6})")


class How(Enum):
    """The ways to change the number of workers."""

    ADD = "ScaleOut"
    REMOVE = "ScaleIn"
    SET = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the workers of a job."""

    how: How
    count: int = 0
    pods: tuple[str, ...] = ()
    """The workers to remove; empty if only their number is asked for."""

    def of(self, workers: int) -> int:
        """Return how many workers there are in the end, of so many now."""
        by = len(self.pods) or self.count
        return {How.ADD: workers + by, How.REMOVE: workers - by, How.SET: self.count}[self.how]


def read_change(words: str | None, removed: Sequence[str]) -> Change:
    """Return what the command line asks for. Raises UsageError."""
    if removed and words is not None:
        raise UsageError(f"{words} and --remove are given; choose one of them")
    if removed:
        return Change(How.REMOVE, pods=tuple(dict.fromkeys(removed)))
    found = _WORDS.fullmatch(words or "")
    if found is None:
        given = "nothing" if words is None else repr(words)
        raise UsageError(f"how many workers? expected +2, -1, 5 or --remove POD, got {given}")
    how = {"+": How.ADD, "-": How.REMOVE, "": How.SET}[found[1]]
    count = int(found[2])
    if not count:
        raise UsageError(f"expected at least one worker, got {words}")
    return Change(how, count)


def scaler(change: Change, job: str, *, timeout: int, force: bool) -> dict[str, object]:
    """Return the object that asks for the change; the API server completes its name."""
    asked: dict[str, object] = {"podNames": list(change.pods)} if change.pods else {"count": change.count}
    field = "toAdd" if change.how is How.ADD else "toDelete"
    annotations = {"annotations": {names.FORCE_ANNOTATION: "true"}} if force else {}
    return {
        "apiVersion": API_VERSION,
        "kind": change.how.value,
        "metadata": {"generateName": f"{job}-{change.how.value.lower()}-", **annotations},
        "spec": {"selector": {"name": job}, field: asked, "timeout": timeout},
    }
