"""
The Endpoint that kubeconfig files describe.

Owns: finding and merging the files as kubectl does, and every field of a cluster, a user and a context that
matters here. What can't be honoured is refused: a field passed over would connect elsewhere, or as someone else.
Imported only when a kubeconfig is used: yaml and urllib come with it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

from mpirt.errors import ConfigError
from mpirt.fields import FileFields as Fields
from mpirt.kubeapi.access.credentials import (
    CredentialSource,
    PemFile,
    PemText,
    Secret,
    StoredCredentials,
    as_token,
)
from mpirt.kubeapi.access.endpoint import HTTPS_PORT, Endpoint, Proxy, as_host, environment_proxy
from mpirt.kubeapi.access.plugin import ClusterInfo, plugin_source
from mpirt.kubeapi.access.proxies import read_proxy
from mpirt.values import Value

_FILE_LIMIT = 16 * 1024 * 1024
_CANT = {
    "insecure-skip-tls-verify": "the API server is always verified; give its certificate-authority instead",
}
_CANT_BE = {
    **dict.fromkeys(
        ("username", "password"),
        "user names and passwords are not supported (nor are they by Kubernetes since 1.19); use a token",
    ),
    "auth-provider": "auth providers are not supported (nor are they by kubectl since 1.26); use an exec plugin",
    **dict.fromkeys(("as", "as-uid", "as-groups", "as-user-extra"), "impersonation is not supported"),
}


class _Entry(Value):
    """The fields of a cluster, user or context and the folder that its relative paths start from."""

    fields: Fields
    folder: Path


class _Merged(Value):
    """All files together, the first that sets a value before the others."""

    files: str
    current: str
    entries: dict[str, dict[str, _Entry]]
    """Those of each kind by their names."""


def from_kubeconfigs(
    paths: Sequence[str], environ: Mapping[str, str], *, context: str = "", named_by: str = "MPIRT_CONTEXT"
) -> Endpoint:
    """
    Read the files and follow `context`, else their current-context, to a cluster and a user.

    `named_by` is what named the context, for messages.

    Raises ConfigError with file, field and what to do.
    """
    if not paths:
        raise ConfigError(f"{named_by} is set, but there is no kubeconfig; set KUBECONFIG")
    merged = _merge([Path(path) for path in paths])
    name = context or merged.current
    if not name:
        raise ConfigError(
            f"{merged.files}: no current-context; set MPIRT_CONTEXT, or: kubectl config use-context NAME"
        )
    chosen = _entry(merged, "contexts", name, named_by if context else "current-context").fields
    cluster = _entry(merged, "clusters", chosen.needed("cluster"), f"{chosen.path}.cluster")
    user = _entry(merged, "users", chosen.needed("user"), f"{chosen.path}.user")
    return _endpoint(cluster, user, environ, context=name, namespace=chosen.text("namespace"))


def _endpoint(
    cluster: _Entry, user: _Entry, environ: Mapping[str, str], *, context: str, namespace: str
) -> Endpoint:
    fields = cluster.fields
    _refuse(fields, _CANT)
    host, port, base_path = _server(fields)
    ca = _pem(fields, "certificate-authority", cluster.folder)
    server_name = fields.text("tls-server-name")
    info = ClusterInfo(
        fields.needed("server"), ca, server_name, _plugin_settings(fields), fields.text("proxy-url")
    )
    return Endpoint(
        host=host,
        port=port,
        ca=ca,
        source=_source(user, environ, info),
        origin=f'context "{context}" of {fields.file}',
        namespace=namespace or "default",
        base_path=base_path,
        server_name=server_name,
        proxy=_proxy(fields, environ, host, port),
    )


def _proxy(fields: Fields, environ: Mapping[str, str], host: str, port: int) -> Proxy | None:
    """The cluster's own proxy, which NO_PROXY can't exclude, else the environment's: both as kubectl has it."""
    url = fields.text("proxy-url")
    if not url:
        return environment_proxy(environ, host, port)
    if "://" not in url:
        raise ConfigError(
            f"{fields.where('proxy-url')}: no scheme; expected http://HOST:PORT or https://HOST:PORT"
        )
    return read_proxy(url, fields.where("proxy-url"))


def _source(user: _Entry, environ: Mapping[str, str], cluster: ClusterInfo) -> CredentialSource:
    fields = user.fields
    _refuse(fields, _CANT_BE)
    certificate = _pem(fields, "client-certificate", user.folder)
    key = _pem(fields, "client-key", user.folder)
    if (certificate is None) != (key is None):
        missing = "client-key" if key is None else "client-certificate"
        raise ConfigError(f"{fields.where(missing)}: is missing: a client certificate needs its key, and a key it")
    token = as_token(fields.text("token"), fields.where("token")) if fields.has("token") else None
    token_path = fields.text("tokenFile")
    token_file = PemFile(str(user.folder / token_path), fields.where("tokenFile")) if token_path else None
    if fields.has("exec") and token is None and token_file is None:
        if certificate is not None:
            raise ConfigError(f"{fields.where('exec')}: stands beside a client certificate; remove one of the two")
        return plugin_source(fields.table("exec"), user.folder, environ, cluster)
    if certificate is None and token is None and token_file is None:
        known = "token, tokenFile, client-certificate with client-key, or exec"
        raise ConfigError(f"{fields.where('')}: holds no credentials; expected one of {known}")
    return StoredCredentials(token=token, token_file=token_file, certificate=certificate, key=key)


def _server(fields: Fields) -> tuple[str, int, str]:
    server, where = fields.needed("server"), fields.where("server")
    try:
        url = urlsplit(server if "://" in server else f"https://{server}")
        host, port = url.hostname, url.port
    except ValueError as error:
        raise ConfigError(f"{where}: is not a URL; expected https://HOST:PORT") from error
    if url.scheme != "https":
        raise ConfigError(f"{where}: does not begin with https://; the API server is always spoken to in TLS")
    if not host or url.username is not None or url.query or url.fragment:
        raise ConfigError(f"{where}: is not of the form https://HOST:PORT/PATH")
    path = url.path.rstrip("/")
    if not (path.isascii() and path.isprintable()) or " " in unquote(path):
        raise ConfigError(f"{where}: there are characters in its path that a URL can't have")
    return as_host(host, where), port or HTTPS_PORT, path


def _pem(fields: Fields, name: str, folder: Path) -> PemFile | PemText | None:
    """PEM given in the kubeconfig itself goes before PEM in a file, as kubectl has it."""
    data, where = fields.text(f"{name}-data"), fields.where(f"{name}-data")
    if data:
        try:
            return PemText(Secret(base64.b64decode("".join(data.split()), validate=True).decode()), where)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"{where}: is not base64 of PEM") from error
    path = fields.text(name)
    return PemFile(str(folder / path), fields.where(name)) if path else None


def _plugin_settings(cluster: Fields) -> object:
    """The cluster's settings for its credential plugin: the extension of a reserved name."""
    for extension in cluster.rows("extensions"):
        if extension.text("name") == "client.authentication.k8s.io/exec":
            return extension.raw("extension")
    return None


def _refuse(fields: Fields, reasons: Mapping[str, str]) -> None:
    for name, reason in reasons.items():
        if fields.has(name):
            raise ConfigError(f"{fields.where(name)}: {reason}")


def _entry(merged: _Merged, kind: str, name: str, asked_by: str) -> _Entry:
    entries = merged.entries[kind]
    if name not in entries:
        known = ", ".join(sorted(entries)) or "none"
        raise ConfigError(f'{merged.files}: {kind}: no "{name}", which {asked_by} names; there are: {known}')
    return entries[name]


def _merge(paths: Sequence[Path]) -> _Merged:
    """The first file that sets a value wins, entry by entry; files that don't exist are passed over."""
    files = [path for path in paths if _exists(path)]
    if not files:
        raise ConfigError(f"KUBECONFIG: no such file: {_listed(paths)}")
    documents = [(_read(path), path.absolute().parent) for path in files]
    currents = [current for document, _ in documents if (current := document.text("current-context"))]
    return _Merged(
        files=_listed(files),
        current=currents[0] if currents else "",
        entries={f"{kind}s": _entries(kind, documents) for kind in ("cluster", "user", "context")},
    )


def _entries(kind: str, documents: Sequence[tuple[Fields, Path]]) -> dict[str, _Entry]:
    found: dict[str, _Entry] = {}
    for document, folder in documents:
        for row in document.rows(f"{kind}s"):
            name, inner = row.needed("name"), row.raw(kind)
            fields = Fields({} if inner is None else inner, file=row.file, path=f"{kind}s[{name}].{kind}")
            found.setdefault(name, _Entry(fields, folder))
    return found


def _listed(paths: Sequence[Path]) -> str:
    return ":".join(str(path) for path in paths)


def _exists(path: Path) -> bool:
    # Not Path.exists(): what it makes of a folder that may not be entered depends on Python's version.
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable(path, error) from error
    return True


def _unreadable(path: Path, error: OSError) -> ConfigError:
    remedy = ""
    if isinstance(error, PermissionError):
        remedy = f"; let the user {os.geteuid()} read it, or set KUBECONFIG to another file or to nothing"
    return ConfigError(f"cannot read KUBECONFIG {path}: {error.strerror}{remedy}")


def _read(path: Path) -> Fields:
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_LIMIT + 1)
    except OSError as error:
        raise _unreadable(path, error) from error
    if len(data) > _FILE_LIMIT:
        raise ConfigError(f"KUBECONFIG {path} is larger than {_FILE_LIMIT} bytes: is it the right file?")
    try:
        value = _parse(data)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigError(f"{path}: {place}not valid YAML") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: neither valid YAML nor JSON") from error
    return Fields({} if value is None else value, file=str(path))


def _parse(data: bytes) -> object:
    if data.lstrip()[:1] == b"{":
        # JSON is YAML, but twenty times faster to read. (YAML may begin like this too.)
        with contextlib.suppress(ValueError):
            return json.loads(data)
    # The C loader where the wheel has it: the other takes a second for a big file. Both are safe loaders.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(data, Loader=loader)  # noqa: S506  a safe loader, as said
