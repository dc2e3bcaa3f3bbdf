"""
Plans and their actions.

Owns: the kinds of actions, and what each asks of the code that carries it out. An action holds everything that is
needed for that; the executor decides nothing.

Every action may be carried out twice: names are fixed, and changes and deletions of an object test its uid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mpirt.controller.model.conditions import Type
from mpirt.controller.model.proofs import Question

Manifest = Mapping[str, Any]
Operation = Mapping[str, Any]
"""One operation of a JSON patch."""


def pointer(*path: str) -> str:
    """Return the JSON pointer to a field."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)


def is_object(uid: str) -> Operation:
    """Return the operation that lets a patch fail if its name belongs to another object by now."""
    return {"op": "test", "path": "/metadata/uid", "value": uid}


@dataclass(frozen=True, slots=True)
class Create:
    """
    Create the object, or with `dry_run` only ask the API server to validate it.

    If an object of that name exists (409 AlreadyExists), it is read, and the next plan sees whose it is. With
    `once` the action then counts as done before, as for events; with `dry_run` it counts as accepted, because the
    name is checked after everything else. A dry run that exceeds a quota counts as accepted, too.
    """

    manifest: Manifest
    why: str
    digest: str = ""
    """Of the manifest, to remember a rejection by; empty if nothing in it comes from the user."""
    dry_run: bool = False
    once: bool = False

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class Patch:
    """
    Change fields of the object by a JSON patch, whose first operation tests the uid.

    Nothing else in the object is touched. After a 409, or if the patch can't be applied (422, for example because
    the uid test fails), the object is read. If it has not changed since the plan was made, the answer was a
    rejection. After a 404 the job is planned again, with back-off.
    """

    kind: str
    name: str
    operations: tuple[Operation, ...]
    why: str
    digest: str = ""
    """Of what is written, to remember a rejection by; empty if nothing in it comes from the user."""


@dataclass(frozen=True, slots=True)
class Delete:
    """
    Delete the object with this uid, and no other with its name; 404 and 409 count as done.

    `foreground`: the object stays visible until everything that it owns is gone. `orphans`: what it owns stays.
    `grace`: the grace period in seconds; None uses the object's own, 0 does not wait for the node to confirm
    termination.

    `version`: only if it still has this resourceVersion. Otherwise the answer is 409, and a new plan is made, with
    back-off, from what the watch reports meanwhile.
    """

    kind: str
    name: str
    uid: str
    why: str
    foreground: bool = False
    orphans: bool = False
    grace: int | None = None
    version: str = ""


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """
    Replace the status of the job object, or of an object that requests a change of the job. These are the last
    actions of a plan, one per object, and only for a status that has changed.

    The answer is 409 if the object has changed since the plan was made: it is read, and a new plan is made.
    """

    kind: str
    name: str
    uid: str
    status: Manifest
    why: str
    came_true: frozenset[Type] = frozenset()
    """The conditions that are true now and were not before."""
    version: str = ""
    """The resourceVersion of the object that the plan was made for; the reconciler sets it."""


@dataclass(frozen=True, slots=True)
class Find:
    """
    Read an object that there was and that no watch shows, before it is taken to be gone.

    A watch may be behind, or the object may have lost its labels. The next plan knows what was found, if anything.
    """

    kind: str
    name: str
    why: str


Action = Create | Patch | Delete | WriteStatus | Find


@dataclass(frozen=True, slots=True)
class Plan:
    """The actions to carry out now, in this order, and when to look again if no event comes before."""

    actions: tuple[Action, ...] = ()
    again: datetime | None = None
    questions: tuple[Question, ...] = ()
    """Which pods to ask whether they are in use."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """
    The API server's refusal of an object or patch, remembered so that the request is not repeated at once.

    The reconciler creates one for each Refused outcome, for a patch of an unchanged object that can't be applied,
    and for a failure of the server that lasts; in each case only if the action has a digest. It ends after a
    back-off that grows with each repetition: an admission rule or a quota may have changed.
    """

    kind: str
    digest: str
    """Of the object or patch that was refused; a different template has another digest."""
    message: str
    """The API server's message."""
    final: bool
    """Whether only a change of the spec can help (invalid object), not one in the cluster (policy, quota)."""


def earliest(*times: datetime | None) -> datetime | None:
    """Return the earliest of several times, of which any may be None; None if all are."""
    return min((time for time in times if time is not None), default=None)
