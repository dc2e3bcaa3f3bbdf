"""
Plans, their actions, and the outcomes of these.

Owns: the kinds of actions, what each asks of the code that carries it out, and which outcome an API server's
answer means; and what pods are asked. An action holds everything that is needed for that; the executor decides
nothing. No I/O; loop/reconcile.py reacts to the outcomes.

Every action may be carried out twice: names are fixed, and changes and deletions of an object test its uid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mpirt.controller.model.conditions import Type
from mpirt.controller.model.reading import Body, rows, table, text


@dataclass(frozen=True, slots=True)
class Question:
    """Ask whether a command still runs in this container, now or at a later date."""

    pod: str
    uid: str
    container: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a pod has answered last."""

    at: datetime
    sessions: int | None = None
    """How many commands run in it; None if that could not be found out."""
    problem: str = ""
    """Why it could not."""
    idle_since: datetime | None = None
    """Since when every answer has been that none runs."""


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


@dataclass(frozen=True, slots=True)
class Done:
    """The action succeeded. `body` is the object afterwards, if it still exists and belongs in the cache."""

    body: Body | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The API server has rejected the request; repeating it at once would get the same answer."""

    message: str
    final: bool
    """Whether only a different object can help."""


@dataclass(frozen=True, slots=True)
class Exists:
    """An object of that name exists."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """The object may have changed since the plan was made; reading it tells."""

    message: str


@dataclass(frozen=True, slots=True)
class Missing:
    """The object to be changed does not exist, or the namespace to create it in."""

    message: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The result is unknown, or the API server has failed or is overloaded: retry later."""

    message: str
    answered: bool = False
    """Whether the API server has answered at all."""
    retry_after: float = 0.0
    """Seconds that the API server asks to wait before the next request."""


Outcome = Done | Refused | Exists | Conflict | Missing | Unavailable

_OK, _REDIRECTS = 200, 300
_FORBIDDEN, NOT_FOUND, CONFLICT, _INVALID = 403, 404, 409, 422
# A webhook that may have side effects can't be part of a dry run. Creating the real object will show the result.
_UNTRIED = "does not support dry run"
# Accepted in a dry run: quotas are checked after everything else, and objects to be replaced may still use them.
_FULL = "exceeded quota"
# How API servers begin the message of a webhook's rejection. Its code and details are the webhook's own.
_WEBHOOK = "admission webhook "
# The request itself is wrong, regardless of permissions and of the state of the cluster.
_MISTAKES = frozenset({400, 405, 413, 415, _INVALID})


def is_good(code: int) -> bool:
    """Whether the status code means success."""
    return _OK <= code < _REDIRECTS


def outcome(action: Action, code: int, body: Body, *, retry_after: float = 0.0) -> Outcome:
    """Return the outcome that an answer to an action means."""
    if is_good(code):
        return Done(_remains(action, body))
    message = text(body, "message") or f"the API server answered {code}"
    if isinstance(action, Create) and action.dry_run and (_UNTRIED in message or _FULL in message):
        return Done()
    if code in (NOT_FOUND, CONFLICT):
        return _not_as_thought(action, code, body, message)
    if isinstance(action, Patch | WriteStatus) and code == _INVALID and _can_not_be_applied(body, message):
        return Conflict(message)
    if code in _MISTAKES or code == _FORBIDDEN:
        return Refused(message, final=code in _MISTAKES and not _is_policy(code, body, message))
    return Unavailable(message, answered=True, retry_after=retry_after)


def _not_as_thought(action: Action, code: int, body: Body, message: str) -> Outcome:
    if isinstance(action, Delete) and not (action.version and code == CONFLICT):
        # The object with that uid no longer exists.
        return Done()
    if code == NOT_FOUND:
        return Missing(message)
    # A namespace that is being deleted, or a quota that changed at that moment, answers 409 as well.
    if isinstance(action, Create) and text(body, "reason") == "AlreadyExists":
        return Done() if action.once or action.dry_run else Exists()
    return Conflict(message)


def _is_policy(code: int, body: Body, message: str) -> bool:
    """Whether an admission webhook or policy, which can be changed, has rejected it: these name no field."""
    names_field = any(text(cause, "field") for cause in rows(table(body, "details"), "causes"))
    return message.startswith(_WEBHOOK) or (code == _INVALID and not names_field)


def _can_not_be_applied(body: Body, message: str) -> bool:
    """
    Whether the JSON patch does not fit the object: a test fails, or a path does not exist.

    The code is that of an invalid object, but this error occurs before there is an object to validate, so its
    details are empty. Validation and admission policies name the object in theirs.
    """
    return not table(body, "details") and not message.startswith(_WEBHOOK)


def _remains(action: Action, body: Body) -> Body | None:
    match action:
        case Create(dry_run=True) | Create(once=True):
            return None
        case Delete():
            # The answer is a Status if the object is gone; it is the object if it is still terminating.
            return body if text(body, "kind") != "Status" else None
        case _:
            return body
