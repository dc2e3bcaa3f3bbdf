"""
Sends requests to the API server.

Owns: connections, credentials and time-outs, all by means of the kubernetes package; the paths of objects. A
response with any status code is returned as an Answer; without a response, Away is raised. Nothing is retried
here: the caller knows whether that is safe.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException

from mpirt import names
from mpirt.controller.cluster.decoding import decode
from mpirt.controller.model.actions import is_good
from mpirt.controller.model.kinds import Resource
from mpirt.errors import ConfigError

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"

# Enough for a watch of each kind, each worker and the lease.
_CONNECTIONS = 32
_CONNECT_WITHIN = 3.0
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


def path(resource: Resource, namespace: str = "", name: str = "", *, below: str = "") -> str:
    """Return the URL path of a kind's objects, of the one with `name`, or of its subresource `below`."""
    words = ["apis" if resource.group else "api", *resource.api_version.split("/")]
    words += ["namespaces", namespace] if namespace else []
    words += [resource.plural, *filter(None, (name, below))]
    return "/" + "/".join(quote(word, safe="") for word in words)


class Stream:
    """The lines of a watch. close() may be called from any thread; it ends lines() in the thread that reads."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        # The socket is an internal detail of urllib3; where it isn't found, a read ends only by its time-out.
        connection = getattr(response, "connection", None)
        self._socket: socket.socket | None = getattr(connection, "sock", None)

    def lines(self) -> Iterator[bytes]:
        """Yield lines until the server ends the watch. Raises Away if the connection breaks."""
        rest = b""
        try:
            for piece in self._response.stream(_READ_AT_ONCE, decode_content=True):
                *whole, rest = (rest + piece).split(b"\n")
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

    def __init__(self, configuration: client.Configuration, count: Count) -> None:
        self._configuration = configuration
        self._count = count
        self._rest = RESTClientObject(configuration)
        self._credentials = threading.Lock()

    def ask(self, request: Request) -> Answer:
        """Send a request and return the answer. Raises Away."""
        response = self._send(request)
        try:
            said = response.data
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Away(_said(error)) from error
        finally:
            response.release_conn()
        return Answer(response.status, _table(said), _retry_after(response))

    def watch(self, request: Request) -> Stream | Answer:
        """
        Start a watch. Return its lines, or the answer if the API server rejects it. Raises Away.

        The watch is given up when no byte arrives for the request's `within`.
        """
        response = self._send(request)
        if response.status == HTTPStatus.OK:
            return Stream(response)
        said = Answer(response.status, _table(response.data), _retry_after(response))
        response.release_conn()
        return said

    def close(self) -> None:
        """Close all connections."""
        self._rest.close()

    def _send(self, request: Request) -> urllib3.BaseHTTPResponse:
        query = f"?{urlencode(request.query)}" if request.query else ""
        code = 0
        try:
            asked = self._rest.request(
                request.method,
                self._configuration.host + request.path + query,
                headers=self._headers(request.content),
                body=request.body,
                _request_timeout=_time_limit(request),
            )
            response: urllib3.BaseHTTPResponse = asked.response
            code = response.status
        except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
            raise Away(_said(error)) from error
        finally:
            self._count(request.verb, request.resource, code)
        return response

    def _headers(self, content: str) -> dict[str, str]:
        headers = {"Accept": JSON, "Content-Type": content, "User-Agent": names.CONTROLLER}
        # Reading the token may refresh it, which changes the configuration.
        with self._credentials:
            token = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            headers["Authorization"] = token
        return headers


def _time_limit(request: Request) -> float | tuple[float, float]:
    """Return the time limit in the kubernetes package's terms: in all, or to connect and between two bytes."""
    if request.method != "GET":
        return request.within
    return min(_CONNECT_WITHIN, request.within), request.within


def connect(kubeconfig: str, *, count: Count) -> Link:
    """Return a link to the API server of the kubeconfig; without one, of this pod, else of ~/.kube/config."""
    configuration = client.Configuration()
    try:
        if kubeconfig:
            config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
        else:
            _load_default(configuration)
    except (ConfigException, OSError, ValueError, TypeError) as error:
        raise ConfigError(
            f"no API server configured: {_said(error)}; set --kubeconfig or run in a cluster"
        ) from error
    configuration.retries = False
    configuration.connection_pool_maxsize = _CONNECTIONS
    return Link(configuration, count)


def _load_default(configuration: client.Configuration) -> None:
    try:
        config.load_incluster_config(client_configuration=configuration)
    except ConfigException:
        config.load_kube_config(client_configuration=configuration)


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
