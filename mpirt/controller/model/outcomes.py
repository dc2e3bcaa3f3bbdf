"""
The outcomes of actions.

Owns: the kinds of outcomes, and which one an API server's answer means. No I/O; loop/reconcile.py reacts to them.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpirt.controller.model.actions import Action, Create, Delete, Patch, WriteStatus
from mpirt.controller.model.reading import Body, rows, table, text


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
_FORBIDDEN, _NOT_FOUND, _CONFLICT, _INVALID = 403, 404, 409, 422
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
    if code in (_NOT_FOUND, _CONFLICT):
        return _not_as_thought(action, code, body, message)
    if isinstance(action, Patch | WriteStatus) and code == _INVALID and _can_not_be_applied(body, message):
        return Conflict(message)
    if code in _MISTAKES or code == _FORBIDDEN:
        return Refused(message, final=code in _MISTAKES and not _is_policy(code, body, message))
    return Unavailable(message, answered=True, retry_after=retry_after)


def _not_as_thought(action: Action, code: int, body: Body, message: str) -> Outcome:
    if isinstance(action, Delete) and not (action.version and code == _CONFLICT):
        # The object with that uid no longer exists.
        return Done()
    if code == _NOT_FOUND:
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
