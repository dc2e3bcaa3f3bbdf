"""
Certificates for the loopback API server: good ones, and ones that must be refused.

Owns: two authorities and what they sign. Keys are made once per test run; nothing is written to disk.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime

import trustme

HOST = "127.0.0.1"
_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Pem:
    """A certificate with its key, as PEM."""

    chain: str
    key: str


class Authority:
    """The cluster's CA, and a stranger's."""

    def __init__(self) -> None:
        self._ca = trustme.CA(organization_name="the cluster")
        self._stranger = trustme.CA(organization_name="a stranger")
        self._good = self._ca.issue_cert(HOST, "localhost", "kubernetes.default.svc")
        self.expired = self._server(
            self._ca.issue_cert(HOST, not_before=_LONG_AGO, not_after=_LONG_AGO.replace(year=2021))
        )
        self.wrong_name = self._server(self._ca.issue_cert("other.example"))
        self.wrong_ca = self._server(self._stranger.issue_cert(HOST))

    @property
    def good(self) -> ssl.SSLContext:
        """A server as it should be; each time another, so that a test may spoil it."""
        return self._server(self._good)

    @property
    def ca(self) -> str:
        """The CA certificate that clients are given."""
        return self._ca.cert_pem.bytes().decode()

    def client(self, name: str = "launcher") -> Pem:
        """A client certificate that the server accepts."""
        return _pem(self._ca.issue_cert(f"{name}.client.example", common_name=name))

    def strange_client(self) -> Pem:
        """A client certificate that the server has no reason to accept."""
        return _pem(self._stranger.issue_cert("stranger.client.example", common_name="stranger"))

    def _server(self, certificate: trustme.LeafCert) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        self._ca.configure_trust(context)
        return context


def _pem(certificate: trustme.LeafCert) -> Pem:
    chain = "".join(blob.bytes().decode() for blob in certificate.cert_chain_pems)
    return Pem(chain, certificate.private_key_pem.bytes().decode())
