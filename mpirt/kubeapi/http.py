"""
One request to the API server, with one deadline for all of it.

Owns: sending a request, waiting for its answer, and keeping one connection for the next request. Standard library
only, and little of it: every remote command and every look for hosts imports this.
"""

from __future__ import annotations

from mpirt.errors import PeerError
from mpirt.kubeapi import asks
from mpirt.kubeapi.answers import (
    ConnectionLost,
    Expired,
    JsonObject,
    TimedOut,
    Unauthorized,
    failure_error,
    parse_object,
    read_failure,
)
from mpirt.kubeapi.asks import Ask
from mpirt.kubeapi.credentials import Credentials
from mpirt.kubeapi.deadline import Deadline
from mpirt.kubeapi.dial import Dialer, check, wait
from mpirt.kubeapi.listing import read_page
from mpirt.kubeapi.stream import TlsStream
from mpirt.kubeapi.wire import OK, Head, ResponseReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _T = TypeVar("_T")

# A page of 250 pods is one to three MB of JSON; kubectl takes 500, at twice the memory.
PAGE = 250
# A list whose continue token expires is begun again; one that expires each time can't be read in time.
_FRESH_STARTS = 3
# An answer without a length ends with its connection, which not everybody closes: a refusal is complete by then.
_GRACE = 1.0


class Api:
    """Asks one API server one thing at a time. Not for use from several threads."""

    __slots__ = ("_idle", "dialer")

    def __init__(self, dialer: Dialer) -> None:
        self.dialer = dialer
        self._idle: TlsStream | None = None

    def get_pod(self, namespace: str, name: str, deadline: Deadline) -> JsonObject:
        """Read a pod. Raises NotFound and what else an ApiError may be, Unreachable, PeerError, ConfigError."""
        return self.get(asks.get_pod(namespace, name), deadline)

    def get(self, ask: Ask, deadline: Deadline) -> JsonObject:
        """Ask for one object."""

        def once(credentials: Credentials) -> JsonObject:
            head, body = self._answer(self.dialer.request(ask.target, credentials), credentials, deadline)
            if head.status == OK:
                return parse_object(body, ask)
            raise failure_error(read_failure(head, body), ask, origin=self.dialer.endpoint.origin)

        return self._with_credentials(once, deadline)

    def list_pods(
        self,
        namespace: str,
        keep: Callable[[JsonObject], _T],
        deadline: Deadline,
        *,
        labels: str = "",
        page: int = PAGE,
    ) -> list[_T]:
        """
        Read all pods with the labels, page by page: either all of them or an error.

        `keep` makes of each pod what is worth keeping, so that thousands of them never stand in memory whole.
        """
        for _ in range(_FRESH_STARTS - 1):
            try:
                return self._list_once(namespace, keep, deadline, labels, page)
            except Expired:
                continue
        return self._list_once(namespace, keep, deadline, labels, page)

    def close(self) -> None:
        """Close the connection that was kept, if any."""
        if self._idle is not None:
            self._idle.close()
            self._idle = None

    def _list_once(
        self, namespace: str, keep: Callable[[JsonObject], _T], deadline: Deadline, labels: str, page: int
    ) -> list[_T]:
        found: list[_T] = []
        after = ""
        while True:
            ask = asks.list_pods(namespace, labels=labels, limit=page, after=after)
            part = read_page(self.get(ask, deadline), ask)
            found += [keep(item) for item in part.items]
            if not part.following:
                return found
            if part.following == after:
                raise PeerError(f"could not {ask.doing}: the list goes round in a circle")
            after = part.following

    def _with_credentials(self, once: Callable[[Credentials], _T], deadline: Deadline) -> _T:
        """Tokens are replaced under a running program: when one isn't accepted, use the next if there is one."""
        used = self.dialer.credentials(deadline)
        try:
            return once(used)
        except Unauthorized:
            self.dialer.endpoint.source.renew()
            fresh = self.dialer.credentials(deadline)
            if fresh == used:
                raise
        return once(fresh)

    def _answer(self, request: bytes, credentials: Credentials, deadline: Deadline) -> tuple[Head, bytes]:
        stream, reader = self._exchange(request, credentials, deadline)
        self._keep(stream, reader)
        return reader.answer()

    def _exchange(
        self, request: bytes, credentials: Credentials, deadline: Deadline
    ) -> tuple[TlsStream, ResponseReader]:
        """Send on the connection that was kept; when it turns out to have been closed meanwhile, on a new one."""
        stream, reader = self._take_idle(), ResponseReader()
        if stream is not None:
            try:
                _converse(stream, request, reader, deadline)
            except ConnectionLost:
                if not reader.untouched:
                    raise
            else:
                return stream, reader
        stream = self.dialer.open(deadline, credentials)
        _converse(stream, request, reader, deadline)
        return stream, reader

    def _take_idle(self) -> TlsStream | None:
        stream, self._idle = self._idle, None
        if stream is None:
            return None
        try:
            if stream.read() is None:
                return stream
        except (ConnectionLost, PeerError):
            pass
        stream.close()
        return None

    def _keep(self, stream: TlsStream, reader: ResponseReader) -> None:
        if reader.reusable:
            self._idle = stream
        else:
            stream.close()


def _converse(stream: TlsStream, request: bytes, reader: ResponseReader, deadline: Deadline) -> None:
    """Send a request and read its answer. The stream is closed when that fails."""
    try:
        check(stream, deadline, "sending the request")
        stream.write(request)
        while not reader.complete:
            _read_some(stream, reader, deadline)
            if reader.head is not None and not reader.framed and reader.head.status != OK:
                _read_unframed(stream, reader, deadline.within(_GRACE))
    except BaseException:
        stream.close()
        raise


def _read_some(stream: TlsStream, reader: ResponseReader, deadline: Deadline) -> None:
    doing = "waiting for its answer" if reader.head is None else "reading its answer"
    check(stream, deadline, doing)
    data = stream.read()
    if data is None:
        wait(stream, deadline, doing)
        stream.flush()
    elif data:
        try:
            reader.feed(data)
        except PeerError as error:
            raise PeerError(f"the API server at {stream.peer.name}: {error}") from error
    else:
        reader.eof()
        if not reader.complete:
            what = "without an answer" if reader.untouched else "in the middle of its answer"
            raise ConnectionLost(f"the API server at {stream.peer.name} closed the connection {what}")


def _read_unframed(stream: TlsStream, reader: ResponseReader, deadline: Deadline) -> None:
    try:
        while not reader.complete:
            _read_some(stream, reader, deadline)
    except TimedOut:
        reader.eof()
