"""
What an API server's answer means when it isn't the thing that was asked for.

Owns: reading a Status, and the typed error with its text for every HTTP status. No I/O.

Only what a Status or a plain-text body says is repeated, in one line of printable characters and cut short: pages
of load balancers and anything else that may hold more than it should are dropped.
"""

from __future__ import annotations

import json

from mpirt.errors import ConfigError, MpirtError, NoPod, PeerError, Refused, Unreachable, one_line
from mpirt.kubeapi.request.asks import Ask
from mpirt.kubeapi.request.http1 import Head
from mpirt.values import Value

# JSON as it was sent: a field is checked where it is read.
JsonObject = dict[str, object]

# Load balancers ask for minutes, though the server may be back at once; a running command may have less.
_LONGEST_RETRY_AFTER = 30.0


class Failure(Value):
    """An API server's no."""

    status: int
    reason: str
    """The machine-readable word of a Status, as NotFound, AlreadyExists or Expired; empty without a Status."""
    message: str
    """One printable line of what the server said; may be empty."""
    retry_after: float | None
    """In how many seconds to ask again, 30 at most."""
    is_status: bool
    """Whether it came as a Status object, so from an API server and not from something on the way or behind."""


class ApiError(MpirtError):
    """An answer that is a no. `failure` is all that is known of it."""

    def __init__(self, message: str, failure: Failure) -> None:
        super().__init__(message)
        self.failure = failure


class Unauthorized(ApiError, Refused):
    """401: authentication failed."""


class CertificateRefused(Refused):
    """The API server does not accept our client certificate."""


class Forbidden(ApiError, Refused):
    """403 with a reason: the Role lacks something."""


class ProtocolRefused(ApiError, PeerError):
    """An upgrade was refused without a word on permissions: the sub-protocols on offer are not spoken."""


class NotFound(ApiError, NoPod):
    """404."""


class Expired(ApiError, PeerError):
    """410: the resource version or the continue token is too old; list again."""


class Rejected(ApiError, PeerError):
    """Any other 4xx: the request itself is at fault, or the pod is not in a state for it."""


class Redirected(ApiError, PeerError):
    """3xx. Never followed: a node that has been taken over could redirect to any server (CVE-2020-8559)."""


class Overloaded(ApiError, Unreachable):
    """429, 502, 503, 504: not now. `failure.retry_after` may say when."""


class ServerFailed(ApiError, Unreachable):
    """Any other 5xx: the API server tried and could not, often because of the node behind it."""


# What other credentials may cure.
NOT_ACCEPTED = (Unauthorized, CertificateRefused)


class TimedOut(Unreachable):
    """The deadline passed."""


class ConnectionLost(Unreachable):
    """The connection was refused, reset or closed before the answer was complete."""


class Untrusted(ConfigError):
    """The other side can't prove that it is the API server that was meant."""


_FORBIDDEN = 403
_BUSY = "the API server is overloaded or going away; try again"
# By status, else by its first digit.
_MEANINGS: dict[int, tuple[type[ApiError], str]] = {
    401: (Unauthorized, "the API server does not accept the credentials of {origin}; have they expired?"),
    404: (NotFound, "not found"),
    410: (Expired, "the list is out of date"),
    429: (Overloaded, _BUSY),
    502: (Overloaded, _BUSY),
    503: (Overloaded, _BUSY),
    504: (Overloaded, _BUSY),
    3: (Redirected, "answered with a redirect, which is never followed; is the address in {origin} right?"),
    4: (Rejected, "the API server rejects the request"),
    5: (ServerFailed, "the API server failed"),
}


def read_failure(head: Head, body: bytes) -> Failure:
    """Make the best of an answer that is a no."""
    seconds = head.header("retry-after")
    is_number = seconds.isascii() and seconds.isdigit()
    # float, unlike int, reads any number of digits.
    retry_after = min(float(seconds), _LONGEST_RETRY_AFTER) if is_number else None
    status = _status_object(body)
    if status is not None:
        return status_failure(status, code=head.status, retry_after=retry_after)
    is_text = head.header("content-type").startswith("text/plain")
    message = one_line(body.decode("utf-8", "replace")) if is_text else ""
    return Failure(head.status, "", message, retry_after, is_status=False)


def status_failure(status: JsonObject, *, code: int = 0, retry_after: float | None = None) -> Failure:
    """Read a Status object; its own code counts where HTTP has none to say (a watch's ERROR)."""
    own_code, reason, message = status.get("code"), status.get("reason"), status.get("message")
    return Failure(
        status=code or (own_code if isinstance(own_code, int) else 0),
        reason=reason if isinstance(reason, str) else "",
        message=one_line(message) if isinstance(message, str) else "",
        retry_after=retry_after,
        is_status=True,
    )


def failure_error(failure: Failure, ask: Ask, *, origin: str) -> ApiError:
    """Name the failure by its type, and say what to do about it. `origin` is where the credentials came from."""
    if failure.status == _FORBIDDEN:
        return Forbidden(_forbidden(failure, ask), failure)
    kind, meaning = _MEANINGS.get(failure.status) or _MEANINGS.get(failure.status // 100) or _MEANINGS[4]
    said = f": {failure.message}" if failure.message else ""
    return kind(f"could not {ask.doing}: {meaning.format(origin=origin)} ({failure.status}){said}", failure)


def parse_object(body: bytes, ask: Ask) -> JsonObject:
    """Read a JSON object. Raises PeerError where it isn't one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PeerError(f"could not {ask.doing}: the answer is not JSON ({len(body)} bytes)") from error
    if not isinstance(value, dict):
        raise PeerError(f"could not {ask.doing}: the answer is JSON but not an object")
    return value


class Page(Value):
    """Pods, the version of the whole list, and the token to go on with: empty on the last page."""

    items: list[JsonObject]
    resource_version: str
    following: str


def read_page(answer: JsonObject, ask: Ask) -> Page:
    """Read a list. Raises PeerError."""
    # An empty list in Go may be null in JSON, but the field is there.
    items = [] if answer.get("items", 0) is None else answer.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise PeerError(f"could not {ask.doing}: the answer is not a list")
    metadata = answer.get("metadata")
    if not isinstance(metadata, dict):
        raise PeerError(f"could not {ask.doing}: the list has no metadata")
    version, following = metadata.get("resourceVersion"), metadata.get("continue") or ""
    if not isinstance(version, str) or not isinstance(following, str) or not version:
        raise PeerError(f"could not {ask.doing}: the list does not say which version it is")
    return Page(items, version, following)


def _forbidden(failure: Failure, ask: Ask) -> str:
    needs = f'the Role in namespace "{ask.namespace}" must hold {" and ".join(ask.verbs)} on {ask.resource}'
    said = f" (the API server says: {failure.message})" if failure.message else ""
    return f"may not {ask.doing}: {needs}{said}"


def _status_object(body: bytes) -> JsonObject | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("kind") == "Status" else None
