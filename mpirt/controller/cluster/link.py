"""
Sends requests to the API server.

Owns: connections and time-outs, by means of urllib3; the paths of objects. Endpoint, credentials and TLS are
kubeapi's, as in all programs. A response with any status code is returned as an Answer; without a
response, Away is raised. Only a request that was not authenticated is sent again, if there are newer credentials.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from mpirt import names
from mpirt.controller.model.actions import is_good
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.reading import decode
from mpirt.errors import ConfigError, MpirtError
from mpirt.kubeapi.access.credentials import Certificate, Credentials
from mpirt.kubeapi.access.endpoint import Endpoint, find_endpoint, in_cluster
from mpirt.kubeapi.access.steps import Deadline, run
from mpirt.kubeapi.request.tls import proxy_context, tls_context

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"

# Enough for a watch of each kind, each worker and the lease.
_CONNECTIONS = 32
_CONNECT_WITHIN = 3.0
# For a credential plugin; other credentials are there at once.
_CREDENTIALS_WITHIN = 60.0
_READ_AT_ONCE = 1 << 16
# A proxy in front of the API server may ask for an unreasonably long wait.
_LONGEST_RETRY_AFTER = 300.0


class Away(Exception):
    """No response arrived: whether the request was carried out is unknown."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of the API server."""

    code: int
    body: Mapping[str, Any]
    """An object, a list or a Status; a text that is not JSON becomes its `message`."""
    retry_after: float = 0.0
    """Seconds that it asks clients to wait before the next request (Retry-After)."""

    @property
    def is_good(self) -> bool:
        return is_good(self.code)

    @property
    def message(self) -> str:
        """The message of an error response."""
        return str(self.body.get("message") or f"the API server answered {self.code}")


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the API server."""

    verb: str
    """The Kubernetes verb, for the metrics."""
    method: str
    path: str
    resource: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content: str = JSON
    within: float = 10.0
    """Seconds without a byte after which the request is given up; for a write, seconds in all."""


Count = Callable[[str, str, int], None]
"""Called after each request with the verb, the resource and the status code (0: no response)."""


def path(resource: Resource, namespace: str = "", name: str = "") -> str:
    """Return the URL path of a kind's objects, or of the one with `name`."""
    within = f"namespaces/{quote(namespace, safe='')}/" if namespace else ""
    one = f"/{quote(name, safe='')}" if name else ""
    return f"/{'apis' if resource.group else 'api'}/{resource.api_version}/{within}{resource.plural}{one}"


class Stream:
    """The lines of a watch. close() may be called from any thread; it ends lines() in the thread that reads."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        # The socket is an internal detail of urllib3; where it isn't found, a read ends only by its time-out.
        connection = getattr(response, "connection", None)
        found = getattr(connection, "sock", None)
        # TLS within the TLS of a proxy is a wrapper without shutdown().
        self._socket: socket.socket | None = getattr(found, "socket", found)

    def lines(self) -> Iterator[bytes]:
        """Yield lines until the server ends the watch. Raises Away if the connection breaks."""
        # In pieces until its end arrives: a ConfigMap with the keeper is one line of some 400 kB.
        begun: list[bytes] = []
        try:
            for piece in self._response.stream(_READ_AT_ONCE, decode_content=True):
                end, *more = piece.split(b"\n")
                begun.append(end)
                if more:
                    *whole, rest = b"".join(begun), *more
                    begun = [rest]
                    yield from filter(None, whole)
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError) as error:
            # urllib3 raises the last two when the socket is shut down while it reads.
            raise Away(_said(error)) from error
        finally:
            self._response.close()

    def close(self) -> None:
        """Shut the connection down."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)


class Link:
    """Access to one API server. Every method may be called from any thread."""

    def __init__(self, endpoint: Endpoint, count: Count) -> None:
        """Raises ConfigError if the credentials or the CA can't be read."""
        self._endpoint = endpoint
        self._count = count
        self._credentials = threading.Lock()
        self._pool: urllib3.HTTPConnectionPool | None = None
        self._shown: Certificate | None = None
        self._connections(Deadline(_CREDENTIALS_WITHIN))

    def ask(self, request: Request) -> Answer:
        """Send a request and return the answer. Raises Away."""
        return _answer(self._send(request))

    def watch(self, request: Request) -> Stream | Answer:
        """
        Start a watch. Return its lines, or the answer if the API server rejects it. Raises Away.

        The watch is given up when no byte arrives for the request's `within`.
        """
        response = self._send(request)
        if response.status == HTTPStatus.OK:
            return Stream(response)
        return _answer(response)

    def close(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            self._pool.close()

    def _send(self, request: Request) -> urllib3.BaseHTTPResponse:
        used, response = self._send_once(request)
        if response.status != HTTPStatus.UNAUTHORIZED:
            return response
        # Tokens are replaced under a running program.
        self._endpoint.source.renew(used)
        fresh, again = used, response
        with contextlib.suppress(Away):
            fresh, _ = self._ready(request)
        if fresh != used:
            response.drain_conn()
            _, again = self._send_once(request)
        return again

    def _send_once(self, request: Request) -> tuple[Credentials, urllib3.BaseHTTPResponse]:
        credentials, pool = self._ready(request)
        query = f"?{urlencode(request.query)}" if request.query else ""
        code = 0
        try:
            response = pool.urlopen(
                request.method,
                f"{self._endpoint.base_path}{request.path}{query}",
                body=None if request.body is None else json.dumps(request.body),
                headers=_headers(request.content, credentials),
                retries=False,
                redirect=False,
                timeout=_time_limit(request),
                preload_content=False,
            )
            code = response.status
        except (urllib3.exceptions.HTTPError, OSError) as error:
            if isinstance(error, urllib3.exceptions.SSLError):
                # The CA may have been replaced.
                self._pool = None
            raise Away(_said(error)) from error
        finally:
            self._count(request.verb, request.resource, code)
        return credentials, response

    def _ready(self, request: Request) -> tuple[Credentials, urllib3.HTTPConnectionPool]:
        try:
            return self._connections(Deadline(min(request.within, _CREDENTIALS_WITHIN)))
        except MpirtError as error:
            self._count(request.verb, request.resource, 0)
            raise Away(str(error)) from error

    def _connections(self, deadline: Deadline) -> tuple[Credentials, urllib3.HTTPConnectionPool]:
        """The credentials of this moment, and connections that show their certificate."""
        with self._credentials:
            credentials = run(self._endpoint.source.credentials(deadline))
            pool = self._pool
            if pool is None or self._shown != credentials.certificate:
                manager = _manager(self._endpoint, credentials.certificate)
                self._pool = pool = manager.connection_from_url(f"https://{self._endpoint.name}")
                self._shown = credentials.certificate
            return credentials, pool


def _answer(response: urllib3.BaseHTTPResponse) -> Answer:
    """Read the whole answer. Raises Away."""
    try:
        said = response.data
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Away(_said(error)) from error
    finally:
        response.release_conn()
    return Answer(response.status, _table(said), _retry_after(response))


def _manager(endpoint: Endpoint, certificate: Certificate | None) -> urllib3.PoolManager:
    """Return the way to the API server, with TLS as kubeapi has it."""
    proxy, how = endpoint.proxy, dict[str, Any](maxsize=_CONNECTIONS)
    how["ssl_context"] = tls_context(endpoint.ca, certificate)
    if endpoint.server_name:
        how["server_hostname"] = endpoint.server_name
    if proxy is None:
        return urllib3.PoolManager(**how)
    if proxy.authorization is not None:
        how["proxy_headers"] = {"Proxy-Authorization": f"Basic {proxy.authorization.reveal()}"}
    if proxy.scheme == "https":
        how["proxy_ssl_context"] = proxy_context(endpoint.ca)
    return urllib3.ProxyManager(proxy.url, **how)


def _headers(content: str, credentials: Credentials) -> dict[str, str]:
    headers = {"Accept": JSON, "Content-Type": content, "User-Agent": names.CONTROLLER}
    if credentials.token is not None:
        headers["Authorization"] = f"Bearer {credentials.token.reveal()}"
    return headers


def _time_limit(request: Request) -> urllib3.Timeout:
    """Return the time limit of a write, in all, or of a read, to connect and between two bytes."""
    if request.method != "GET":
        return urllib3.Timeout(total=request.within)
    return urllib3.Timeout(connect=min(_CONNECT_WITHIN, request.within), read=request.within)


def endpoint_of(kubeconfig: str) -> Endpoint:
    """The API server of the kubeconfig; without one, of this pod, else of ~/.kube/config. Raises ConfigError."""
    if kubeconfig:
        try:
            return find_endpoint({**os.environ, "KUBECONFIG": kubeconfig})
        except ConfigError as error:
            raise ConfigError(f"no API server configured: {error}; is --kubeconfig right?") from error
    return in_cluster(os.environ) if os.environ.get("KUBERNETES_SERVICE_HOST") else find_endpoint(os.environ)


def connect(kubeconfig: str, *, count: Count) -> Link:
    """Return a link to the API server of endpoint_of(). Raises ConfigError."""
    return Link(endpoint_of(kubeconfig), count)


def _retry_after(response: urllib3.BaseHTTPResponse) -> float:
    """Return the seconds of Retry-After. API servers never send the other form, a date."""
    written = response.headers.get("Retry-After", "")
    return min(float(written), _LONGEST_RETRY_AFTER) if written.isascii() and written.isdigit() else 0.0


def _table(said: bytes) -> Mapping[str, Any]:
    try:
        found = decode(said)
    except ValueError:
        return {"message": said[:256].decode("utf-8", "replace").strip()}
    return found if isinstance(found, dict) else {}


def _said(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
