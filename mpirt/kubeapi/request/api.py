"""
One request to the API server, with one deadline for all of it.

Owns: sending a request, waiting for its answer, and keeping one connection for the next request. Standard library
only, and little of it: every remote command and every look for hosts imports this.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TypeAlias, TypeVar

from mpirt.errors import PeerError
from mpirt.kubeapi.access.credentials import Credentials
from mpirt.kubeapi.access.steps import Deadline, Steps, run
from mpirt.kubeapi.request import asks
from mpirt.kubeapi.request.answers import (
    NOT_ACCEPTED,
    ConnectionLost,
    Expired,
    JsonObject,
    failure_error,
    parse_object,
    read_failure,
    read_page,
)
from mpirt.kubeapi.request.asks import PAGE, Ask
from mpirt.kubeapi.request.dial import Dialer, Kept, converse
from mpirt.kubeapi.request.http1 import OK, Head, ResponseReader
from mpirt.kubeapi.request.stream import TlsStream

_T = TypeVar("_T")
_Answered: TypeAlias = tuple[TlsStream, ResponseReader]

# A list whose continue token expires is begun again; one that expires each time can't be read in time.
_FRESH_STARTS = 3
_JSON = ("Content-Type", "application/json")
_CREATED = 201


class Api:
    """Asks one API server one thing at a time. Not for use from several threads."""

    __slots__ = ("_kept", "dialer")

    def __init__(self, dialer: Dialer) -> None:
        self.dialer = dialer
        self._kept = Kept()

    def get_pod(self, namespace: str, name: str, deadline: Deadline) -> JsonObject:
        """Read a pod. Raises NotFound and what else an ApiError may be, Unreachable, PeerError, ConfigError."""
        return self.get(asks.get_pod(namespace, name), deadline)

    def get(self, ask: Ask, deadline: Deadline) -> JsonObject:
        """Ask for one object."""
        return run(self.get_steps(ask, deadline))

    def get_steps(self, ask: Ask, deadline: Deadline) -> Steps[JsonObject]:
        """The same in steps."""

        def once(credentials: Credentials, deadline: Deadline) -> Steps[JsonObject]:
            request = self.dialer.request(ask.target, credentials)
            answered = yield from self._exchange(request, credentials, deadline)
            return self._object(ask, credentials, answered, (OK,))

        return self._with_credentials(once, deadline)

    def write(self, method: str, ask: Ask, body: bytes, deadline: Deadline) -> JsonObject:
        """Have the API server change something, once: what it has not answered is not sent again."""

        def once(credentials: Credentials, deadline: Deadline) -> Steps[JsonObject]:
            request = self.dialer.request(ask.target, credentials, [_JSON], method=method, body=body)
            answered = yield from self._on_a_new_connection(request, credentials, deadline)
            return self._object(ask, credentials, answered, (OK, _CREATED))

        return run(self._with_credentials(once, deadline))

    def list_pods(
        self,
        namespace: str,
        keep: Callable[[JsonObject], _T],
        deadline: Deadline,
        *,
        labels: str = "",
        fields: str = "",
        page: int = PAGE,
    ) -> list[_T]:
        """
        Read all pods with the labels and fields, page by page: either all of them or an error.

        `keep` makes of each pod what is worth keeping, so that thousands of them never stand in memory whole.
        """
        return run(self.list_steps(namespace, keep, deadline, labels=labels, fields=fields, page=page))

    def list_steps(
        self,
        namespace: str,
        keep: Callable[[JsonObject], _T],
        deadline: Deadline,
        *,
        labels: str = "",
        fields: str = "",
        page: int = PAGE,
    ) -> Steps[list[_T]]:
        """The same in steps."""
        ask = partial(asks.list_pods, namespace, labels=labels, fields=fields, limit=page)
        for _ in range(_FRESH_STARTS - 1):
            with contextlib.suppress(Expired):
                return (yield from self._list_once(ask, keep, deadline))
        return (yield from self._list_once(ask, keep, deadline))

    def close(self) -> None:
        """Close the connection that was kept, if any."""
        self._kept.close()

    def _list_once(
        self, ask_after: Callable[..., Ask], keep: Callable[[JsonObject], _T], deadline: Deadline
    ) -> Steps[list[_T]]:
        found: list[_T] = []
        after = ""
        while True:
            ask = ask_after(after=after)
            part = read_page((yield from self.get_steps(ask, deadline)), ask)
            found += [keep(item) for item in part.items]
            if not part.following:
                return found
            if part.following == after:
                raise PeerError(f"could not {ask.doing}: the list goes round in a circle")
            after = part.following

    def _with_credentials(
        self,
        once: Callable[[Credentials, Deadline], Steps[_T]],
        deadline: Deadline,
        credentials_by: Deadline | None = None,
    ) -> Steps[_T]:
        """Tokens are replaced under a running program: when one isn't accepted, use the next if there is one."""
        used, rest = yield from self._credentials(deadline, credentials_by)
        try:
            return (yield from once(used, rest))
        except NOT_ACCEPTED:
            self.dialer.endpoint.source.renew(used)
            fresh, rest = yield from self._credentials(rest, credentials_by)
            if fresh == used:
                raise
        return (yield from once(fresh, rest))

    def _credentials(
        self, deadline: Deadline, credentials_by: Deadline | None
    ) -> Steps[tuple[Credentials, Deadline]]:
        """Credentials, and the deadline for the rest; with `credentials_by` their time does not count for it."""
        left = deadline.left()
        credentials = yield from self.dialer.credentials(credentials_by or deadline)
        return credentials, credentials_by.within(left) if credentials_by else deadline

    def _exchange(self, request: bytes, credentials: Credentials, deadline: Deadline) -> Steps[_Answered]:
        """Send on the connection that was kept; when it turns out to have been closed meanwhile, on a new one."""
        stream, reader = self._kept.take(credentials), ResponseReader()
        if stream is not None:
            try:
                yield from converse(stream, request, reader, deadline)
            except ConnectionLost:
                if not reader.untouched:
                    raise
            else:
                return stream, reader
        return (yield from self._on_a_new_connection(request, credentials, deadline))

    def _on_a_new_connection(
        self, request: bytes, credentials: Credentials, deadline: Deadline
    ) -> Steps[_Answered]:
        reader, stream = ResponseReader(), (yield from self.dialer.open(deadline, credentials))
        yield from converse(stream, request, reader, deadline)
        return stream, reader

    def _object(
        self, ask: Ask, credentials: Credentials, answered: _Answered, done: tuple[int, ...]
    ) -> JsonObject:
        head, body = self._settled(answered, credentials)
        if head.status in done:
            return parse_object(body, ask)
        raise failure_error(read_failure(head, body), ask, origin=self.dialer.endpoint.origin)

    def _settled(self, answered: _Answered, credentials: Credentials) -> tuple[Head, bytes]:
        """The answer; its connection is kept if it can be."""
        stream, reader = answered
        if reader.reusable:
            self._kept.put(stream, credentials)
        else:
            stream.close()
        return reader.answer()
