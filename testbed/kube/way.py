"""
The way to an API server: requests by somebody's token, without a kubectl for each of them.

Each request has a connection of its own, so it may be used from any thread.
"""

from __future__ import annotations

import http.client
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

WITHIN = 60.0
JSON = "application/json"


@dataclass(frozen=True)
class Way:
    """`trust` knows the authority of the certificate that the API server shows."""

    url: str
    token: str
    trust: ssl.SSLContext

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def connected(self, *, timeout: float | None) -> http.client.HTTPSConnection:
        address = urlsplit(self.url)
        assert address.hostname is not None
        return http.client.HTTPSConnection(address.hostname, address.port, context=self.trust, timeout=timeout)

    def send(
        self, method: str, path: str, text: str | None = None, *, content: str = JSON, accept: str = JSON
    ) -> tuple[int, bytes]:
        """Send a request; returns the status and the answer, both as they are."""
        connection = self.connected(timeout=WITHIN)
        try:
            connection.request(method, path, text, self.headers | {"Content-Type": content, "Accept": accept})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
