"""The cluster's secrets: one certificate authority, the API server's certificate, keys and tokens."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from tests.kube import layout, paths
from tests.kube.layout import Node
from tests.kube.shell import run

FOLDER = paths.STATE / "pki"
CA = FOLDER / "ca.crt"
API_CERTIFICATE = FOLDER / "apiserver.crt"
API_KEY = FOLDER / "apiserver.key"
ACCOUNTS_KEY = FOLDER / "service-accounts.key"
ACCOUNTS_PUBLIC = FOLDER / "service-accounts.pub"
TOKENS = FOLDER / "tokens.csv"

_DAYS = "3650"
_CA_KEY = FOLDER / "ca.key"


def create(nodes: Sequence[Node]) -> None:
    """Make everything anew: a cluster never inherits another one's secrets."""
    FOLDER.mkdir(parents=True, mode=0o700)
    _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", _DAYS, "-subj", "/CN=mpirt-kube-ca",
             "-keyout", _CA_KEY, "-out", CA)  # fmt: skip
    _create_server_certificate()
    _openssl("genrsa", "-out", ACCOUNTS_KEY, "2048")
    _openssl("rsa", "-in", ACCOUNTS_KEY, "-pubout", "-out", ACCOUNTS_PUBLIC)
    _create_tokens(nodes)


def token(user: str) -> str:
    """The bearer token of one of the cluster's own users."""
    for line in TOKENS.read_text().splitlines():
        value, name, *_ = line.split(",")
        if name == user:
            return value
    raise KeyError(user)


def _create_server_certificate() -> None:
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc",
             f"kubernetes.default.svc.{layout.CLUSTER_DOMAIN}", "localhost"]  # fmt: skip
    addresses = [layout.API_SERVICE, layout.API_ADDRESS, "127.0.0.1"]
    alternatives = [f"DNS:{name}" for name in names] + [f"IP:{address}" for address in addresses]
    request = FOLDER / "apiserver.csr"
    extensions = FOLDER / "apiserver.ext"
    extensions.write_text(f"subjectAltName={','.join(alternatives)}\nextendedKeyUsage=serverAuth\n")
    _openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kube-apiserver",
             "-keyout", API_KEY, "-out", request)  # fmt: skip
    _openssl("x509", "-req", "-in", request, "-CA", CA, "-CAkey", _CA_KEY, "-CAcreateserial",
             "-days", _DAYS, "-extfile", extensions, "-out", API_CERTIFICATE)  # fmt: skip


def _create_tokens(nodes: Sequence[Node]) -> None:
    users = [("admin", "system:masters"),
             ("system:kube-controller-manager", ""),
             ("system:kube-scheduler", ""),
             ("system:kube-proxy", ""),
             ("dns", "system:masters"),
             *((f"system:node:{node.name}", "system:nodes") for node in nodes)]  # fmt: skip
    lines = (f"{secrets.token_hex(16)},{user},{user},{group}" for user, group in users)
    TOKENS.touch(mode=0o600)
    TOKENS.write_text("\n".join(lines) + "\n")


def _openssl(*words: str | Path) -> None:
    run("openssl", *words)
