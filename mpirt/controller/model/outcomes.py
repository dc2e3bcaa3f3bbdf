"""
What came of an action.

Owns: the kinds of outcomes, and which of them an API server's answer means. No I/O; what to do about an outcome is
reconcile.py's matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpirt.controller.model.actions import Action, Create, Delete, Patch, WriteStatus
from mpirt.controller.model.reading import Body, rows, table, text


@dataclass(frozen=True, slots=True)
class Done:
    """It is as the action wants it. `body` is the object after it, if it still exists and is to be remembered."""

    body: Body | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The API server understood and says no; asking again at once gets the same answer."""

    message: str
    final: bool
    """Whether only another object can help."""


@dataclass(frozen=True, slots=True)
class Exists:
    """There is one of that name."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """What is there isn't what the plan was made for, or seems not to be: only reading it tells."""

    message: str


@dataclass(frozen=True, slots=True)
class Missing:
    """What was to be changed isn't there; or what it was to be made in."""

    message: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Nothing is known, or the server has no time: once more, later."""

    message: str
    answered: bool = False
    """Whether the API server is there and says so."""
    retry_after: float = 0.0
    """Seconds that the API server asks to wait before the next request."""


Outcome = Done | Refused | Exists | Conflict | Missing | Unavailable

_OK, _REDIRECTS = 200, 300
_FORBIDDEN, _NOT_FOUND, _CONFLICT, _INVALID = 403, 404, 409, 422
# What is said where a webhook may have side effects: nothing is known, and the real object will tell.
_UNTRIED = "does not support dry run"
# Of a dry run: quotas are looked at after everything else, and what is replaced may still take the room.
_FULL = "exceeded quota"
# How API servers begin what a webhook says no with. Its code and its details are the webhook's own.
_WEBHOOK = "admission webhook "
# A mistake of the request, whoever asks and whenever.
_MISTAKES = frozenset({400, 405, 413, 415, _INVALID})


def is_good(code: int) -> bool:
    """Whether the API server did it."""
    return _OK <= code < _REDIRECTS


def outcome(action: Action, code: int, body: Body, *, retry_after: float = 0.0) -> Outcome:
    """What an answer to an action means."""
    if is_good(code):
        return Done(_remains(action, body))
    message = text(body, "message") or f"the API server answered {code}"
    if isinstance(action, Create) and action.dry_run and (_UNTRIED in message or _FULL in message):
        return Done()
    if code in (_NOT_FOUND, _CONFLICT):
        return _not_as_thought(action, code, body, message)
    if isinstance(action, Patch | WriteStatus) and code == _INVALID and _can_not_be_applied(body, message):
        return Conflict(message)
    if code in _MISTAKES or code == _FORBIDDEN:
        return Refused(message, final=code in _MISTAKES and not _is_policy(code, body, message))
    return Unavailable(message, answered=True, retry_after=retry_after)


def _not_as_thought(action: Action, code: int, body: Body, message: str) -> Outcome:
    if isinstance(action, Delete):
        # It, or the object with that uid, is no more.
        return Done()
    if code == _NOT_FOUND:
        return Missing(message)
    # A namespace that is being deleted, or a quota that changed at that moment, answers 409 as well.
    if isinstance(action, Create) and text(body, "reason") == "AlreadyExists":
        return Done() if action.once or action.dry_run else Exists()
    return Conflict(message)


def _is_policy(code: int, body: Body, message: str) -> bool:
    """Whether somebody's rule says no, who may change it: an admission webhook or policy, which names no field."""
    names_field = any(text(cause, "field") for cause in rows(table(body, "details"), "causes"))
    return message.startswith(_WEBHOOK) or (code == _INVALID and not names_field)


def _can_not_be_applied(body: Body, message: str) -> bool:
    """
    Whether the JSON patch does not fit the object: a test fails, or a path is not there.

    The code is that of an invalid object, but the answer comes from before there is one to judge: its details are
    empty. Validation and admission policies name the object in theirs.
    """
    return not table(body, "details") and not message.startswith(_WEBHOOK)


def _remains(action: Action, body: Body) -> Body | None:
    match action:
        case Create(dry_run=True) | Create(once=True):
            return None
        case Delete():
            # A Status says that it is gone; the object, that it is on its way.
            return body if text(body, "kind") != "Status" else None
        case _:
            return body
