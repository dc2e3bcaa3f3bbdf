"""A control plane's secrets: one certificate authority, the API server's certificate, keys and tokens."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.kube.shell import run

ADMIN = "admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"
MASTERS = "system:masters"

_DAYS = "3650"

# An eighth of an API server's processor time went into handshakes with RSA keys: tests connect anew all the time.
_CURVE = "prime256v1"
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", f"ec_paramgen_curve:{_CURVE}")


@dataclass(frozen=True, slots=True)
class Secrets:
    """Where they are."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def api_certificate(self) -> Path:
        return self.folder / "apiserver.crt"

    @property
    def api_key(self) -> Path:
        return self.folder / "apiserver.key"

    @property
    def accounts_key(self) -> Path:
        return self.folder / "service-accounts.key"

    @property
    def accounts_public(self) -> Path:
        return self.folder / "service-accounts.pub"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.csv"

    def token(self, user: str) -> str:
        """The bearer token of one of the plane's own users."""
        for line in self.tokens.read_text().splitlines():
            value, name, *_ = line.split(",")
            if name == user:
                return value
        raise KeyError(user)


def create(
    made: Secrets, *, users: Iterable[tuple[str, str]], addresses: Sequence[str], names: Sequence[str] = ()
) -> None:
    """
    Make everything anew: a plane never inherits another one's secrets.

    `users` holds the name and group of those who get a token besides the plane's own; the API server's certificate
    is for these addresses and names.
    """
    folder = made.folder
    folder.mkdir(parents=True, mode=0o700)
    # Python 3.13 is strict: it wants to be told what each key is for, and whose.
    _openssl("req", "-x509", *_NEW_KEY, "-nodes", "-days", _DAYS, "-subj", "/CN=mpirt-kube-ca",
             "-addext", "keyUsage=critical,keyCertSign",
             "-keyout", folder / "ca.key", "-out", made.ca)  # fmt: skip
    alternatives = [f"DNS:{name}" for name in names] + [f"IP:{address}" for address in addresses]
    _create_server_certificate(made, ",".join(alternatives))
    _openssl("ecparam", "-name", _CURVE, "-genkey", "-noout", "-out", made.accounts_key)
    _openssl("ec", "-in", made.accounts_key, "-pubout", "-out", made.accounts_public)
    _create_tokens(made, [(ADMIN, MASTERS), (CONTROLLER_MANAGER, ""), (SCHEDULER, ""), *users])


def _create_server_certificate(made: Secrets, alternatives: str) -> None:
    request = made.folder / "apiserver.csr"
    extensions = made.folder / "apiserver.ext"
    extensions.write_text(
        f"subjectAltName={alternatives}\nextendedKeyUsage=serverAuth\nauthorityKeyIdentifier=keyid\n"
    )
    _openssl("req", *_NEW_KEY, "-nodes", "-subj", "/CN=kube-apiserver",
             "-keyout", made.api_key, "-out", request)  # fmt: skip
    _openssl("x509", "-req", "-in", request, "-CA", made.ca, "-CAkey", made.folder / "ca.key", "-CAcreateserial",
             "-days", _DAYS, "-extfile", extensions, "-out", made.api_certificate)  # fmt: skip


def _create_tokens(made: Secrets, users: Iterable[tuple[str, str]]) -> None:
    lines = (f"{secrets.token_hex(16)},{user},{user},{group}" for user, group in users)
    made.tokens.touch(mode=0o600)
    made.tokens.write_text("\n".join(lines) + "\n")


def _openssl(*words: str | Path) -> None:
    run("openssl", *words)
