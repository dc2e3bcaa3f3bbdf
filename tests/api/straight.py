"""
Requests to a plane's API server by path, as administrator or with another user's token.

For tests that make hundreds of them, or that have to hear of every change at once. Every method may be called from
any thread.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from testbed.kube import pki
from testbed.kube.way import JSON, Way
from testbed.plane.plane import Plane

Body = dict[str, Any]

_ENDS_WITHIN = 10.0
MERGE = "application/merge-patch+json"


class Denied(Exception):
    """The API server has said no."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Watching:
    """A watch that one thread reads, until another one closes it."""

    def __init__(self, connection: http.client.HTTPSConnection) -> None:
        self._connection = connection
        self._answer = connection.getresponse()

    def lines(self) -> Iterator[bytes]:
        """A line for each change, those objects first that are there."""
        with suppress(OSError, http.client.HTTPException):
            yield from self._answer

    def hang_up(self) -> None:
        """Let the reader come to the end: closing would leave it waiting."""
        with suppress(OSError):
            socket.socket.shutdown(self._connection.sock, socket.SHUT_RDWR)

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


class Straight:
    """The way to one plane's API server."""

    def __init__(self, plane: Plane, *, token: str = "") -> None:
        """An administrator's, where no other token is given."""
        trust = ssl.create_default_context(cafile=str(plane.site.secrets.ca))
        self._way = Way(plane.site.url, token or plane.site.secrets.token(pki.ADMIN), trust)

    def get(self, path: str) -> Body:
        return self._ask("GET", path)

    def create(self, path: str, body: Body) -> Body:
        return self._ask("POST", path, body)

    def patch(self, path: str, body: Body) -> Body:
        return self._ask("PATCH", path, body, content=MERGE)

    def delete(self, path: str) -> Body:
        return self._ask("DELETE", path)

    def watch(self, path: str) -> Watching:
        """Watch all objects there."""
        connection = self._way.connected(timeout=None)
        connection.request("GET", f"{path}?watch=1", headers=self._way.headers)
        return Watching(connection)

    @contextmanager
    def watching(self, paths: Iterable[str], read: Callable[[Iterator[bytes]], None]) -> Iterator[None]:
        """Watch all of these, each of which a thread reads, until the end of the block."""
        with ExitStack() as stack:
            for path in paths:
                watching = self.watch(path)
                stack.callback(watching.close)
                reader = threading.Thread(target=read, args=(watching.lines(),), name=f"watch {path}")
                reader.start()
                stack.callback(reader.join, _ENDS_WITHIN)
                stack.callback(watching.hang_up)
            yield

    def send(self, method: str, path: str, text: str | None = None, *, content: str = JSON) -> tuple[int, bytes]:
        """Send a request as it is written; returns the status and the answer, both as they are."""
        return self._way.send(method, path, text, content=content)

    def _ask(self, method: str, path: str, body: Body | None = None, content: str = JSON) -> Body:
        status, answer = self.send(method, path, None if body is None else json.dumps(body), content=content)
        found: Body = json.loads(answer)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise Denied(status, str(found.get("message")))
        return found
