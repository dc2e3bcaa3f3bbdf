"""
What a plan is made of.

Owns: the kinds of actions, and what each promises to whoever carries it out. An action holds all that is needed to
do it; who does it has no opinions.

Each of them may be done twice: names are fixed, and uids guard what is changed or deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mpirt.controller.model.conditions import Type

Manifest = Mapping[str, Any]
Operation = Mapping[str, Any]
"""One operation of a JSON patch."""


@dataclass(frozen=True, slots=True)
class Create:
    """
    Make the object, or with `dry_run` ask whether it could be made.

    The answer 409 says that there is one of that name: it is to be read and shown to the next plan, which sees
    whose it is. With `once` it says that this was done before, as it is for events, and all is well; so it is with
    `dry_run`, for names are looked at after everything else. A dry run that exceeds a quota is well, too.
    """

    manifest: Manifest
    why: str
    digest: str = ""
    """Of the manifest, so that a rejection can be remembered; empty where nothing of the user's is in it."""
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

    Nothing else of the object is touched. 404, 409 and a patch that can't be applied (422, for example where the
    test of the uid fails) mean: read the object. If it is the one that the plan saw, the answer is a rejection.
    """

    kind: str
    name: str
    operations: tuple[Operation, ...]
    why: str
    digest: str = ""
    """Of what is written, so that a rejection can be remembered; empty where nothing of the user's is in it."""


@dataclass(frozen=True, slots=True)
class Delete:
    """
    Delete the object with this uid, and none that has taken its name; 404 and 409 are fine.

    `foreground`: it stays visible until all that it owns is gone. `grace`: seconds that its processes get; None
    leaves that to them, 0 doesn't wait for the node's word.
    """

    kind: str
    name: str
    uid: str
    why: str
    foreground: bool = False
    grace: int | None = None


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """
    Replace the status of the job object, or of one that asks for a change of it. The last actions of a plan, one
    for each object, and only if it changed.

    Answered 409 if the object has changed since the plan was made: read it and plan again.
    """

    kind: str
    name: str
    uid: str
    status: Manifest
    why: str
    came_true: frozenset[Type] = frozenset()
    """The conditions that hold now and did not before."""
    version: str = ""
    """The resourceVersion of the object that the plan was made for; whoever carries plans out sets it."""


Action = Create | Patch | Delete | WriteStatus


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done now, in this order, and when to look again if nothing happens before."""

    actions: tuple[Action, ...] = ()
    again: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rejection:
    """
    The API server's no to an object or a change, remembered so that it isn't asked again at once.

    Whoever carries plans out makes one of every 400, 403 and 422 (but for a failed uid test), and forgets it after
    a while that grows with each repetition: an admission rule or a quota may have changed.
    """

    kind: str
    digest: str
    """Of the object that was refused: another template is another question."""
    message: str
    """The API server's own."""
    final: bool
    """Whether only another spec can help (422, 400), rather than another cluster (403)."""


def earliest(*times: datetime | None) -> datetime | None:
    """The first of several moments, of which any may be never."""
    return min((time for time in times if time is not None), default=None)
