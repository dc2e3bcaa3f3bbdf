"""
The HTTP server for /metrics, /healthz and /readyz.

Owns: the server and its thread. The content of the pages is passed in.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mpirt.controller.monitoring.logs import Log, report_mistake
from mpirt.errors import ConfigError

Page = tuple[int, str, bytes]
"""Code, content type, body."""

# A connection on which no request arrives is closed after this time, so that it does not hold a thread.
_PATIENCE = 10.0


def verdict(troubles: list[str], *, notes: Sequence[str] = ()) -> Page:
    """Return the page of a probe: 200 and "ok", or 503 and the problems; then the notes, which change neither."""
    said = "\n".join([*(troubles or ["ok"]), *notes])
    return (503 if troubles else 200), "text/plain; charset=utf-8", f"{said}\n".encode()


class Server:
    """Serves the pages until it is stopped."""

    def __init__(self, address: str, port: int, pages: Mapping[str, Callable[[], Page]], log: Log) -> None:
        try:
            self._server = _Listener((address, port), pages, log)
        except OSError as error:
            said = f"can't listen on port {port}: {error.strerror}; choose another with --metrics-port"
            raise ConfigError(said) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    """A listener that writes its errors to the controller's log."""

    daemon_threads = True

    def __init__(self, where: tuple[str, int], pages: Mapping[str, Callable[[], Page]], log: Log) -> None:
        self._log = log
        self._is_for_all = not where[0] and socket.has_dualstack_ipv6()
        is_ipv6 = self._is_for_all or ":" in where[0]
        self.address_family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
        super().__init__(where, _handler(pages))

    def server_bind(self) -> None:
        # Probes connect to the pod's address, which may be IPv4 or IPv6.
        if self._is_for_all:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  the library's names
        error = sys.exception()
        # A probe that times out closes its connection; that is not worth a log line.
        if error is not None and not isinstance(error, (ConnectionError, TimeoutError)):
            report_mistake(self._log, error)


def _handler(pages: Mapping[str, Callable[[], Page]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            code, kind, body = (
                page() if page else (404, "text/plain", b"not found; available: " + _known(pages) + b"\n")
            )
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing: a probe arrives every few seconds."""

    return Handler


def _known(pages: Mapping[str, Callable[[], Page]]) -> bytes:
    return ", ".join(pages).encode()
