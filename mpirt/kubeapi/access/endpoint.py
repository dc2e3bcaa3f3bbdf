"""
Where the API server is, how to trust it, and which credentials to show.

Owns: the Endpoint, the choice between a kubeconfig and the service account of the pod we run in, and the latter.
The environment and the folders are handed in. A kubeconfig is read by kubeconfig.py, which is imported only then:
it brings a YAML parser.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.credentials import (
    CredentialSource,
    PemFile,
    PemText,
    Secret,
    StoredCredentials,
    read_text,
)
from mpirt.values import Value

# The folder that the kubelet mounts into every pod whose service account isn't kept from it.
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
HTTPS_PORT = 443
_LAST_PORT = 65535


class Proxy(Value):
    """A proxy that is asked to CONNECT."""

    scheme: str
    host: str
    port: int
    authorization: Secret | None
    """What follows `Basic`, where the URL has a user."""
    origin: str
    """Who named it, for messages: `HTTPS_PROXY`."""

    @property
    def url(self) -> str:
        """For messages: without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Endpoint(Value):
    """One API server and the credentials for it."""

    host: str
    port: int
    ca: PemFile | PemText | None
    """What vouches for the server; None for the system's authorities."""
    source: CredentialSource
    origin: str
    """Where all this was found, for messages: `the pod's service account`."""
    namespace: str = "default"
    base_path: str = ""
    server_name: str = ""
    """What the server's certificate must be for, where that isn't the host."""
    proxy: Proxy | None = None

    @property
    def name(self) -> str:
        """Host and port as a URL and the Host header have them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def route(self) -> str:
        """The name and the proxy on the way, for messages."""
        return self.name if self.proxy is None else f"{self.name} through the proxy {self.proxy.url}"

    @property
    def trust(self) -> str:
        """What vouches for the server, in words."""
        return "the system's list of authorities" if self.ca is None else self.ca.origin


def find_endpoint(
    environ: Mapping[str, str], *, service_account: str = SERVICE_ACCOUNT, context: str = ""
) -> Endpoint:
    """
    Find the API server as kubectl does: KUBECONFIG, then ~/.kube/config, then the pod's own service account.

    `context` is what the command line names, and goes before MPIRT_CONTEXT.
    Raises ConfigError that says what was looked for.
    """
    paths = [path for path in environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    home = environ.get("HOME", "")
    default = f"{home}/.kube/config" if home else ""
    if not paths and default and os.path.exists(default):
        paths = [default]
    named_by = "--context" if context else "MPIRT_CONTEXT"
    context = context or environ.get("MPIRT_CONTEXT", "")
    if paths or context:
        # kubeconfig.py makes an Endpoint, and brings yaml, which a pod with a service account never needs.
        from mpirt.kubeapi.access.kubeconfig import from_kubeconfigs  # noqa: PLC0415

        return from_kubeconfigs(paths, environ, context=context, named_by=named_by)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environ, service_account=service_account)
    looked = f"no KUBECONFIG, no {default or '~/.kube/config'}, and not in a pod (no KUBERNETES_SERVICE_HOST)"
    raise ConfigError(f"no API server configured: {looked}; set KUBECONFIG")


def in_cluster(environ: Mapping[str, str], *, service_account: str = SERVICE_ACCOUNT) -> Endpoint:
    """Use the service account of the pod that we run in. Its token is read at every connection: it changes."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "").strip("[]")
    if not host:
        raise ConfigError("not in a pod: KUBERNETES_SERVICE_HOST is not set")
    host = as_host(host, "KUBERNETES_SERVICE_HOST")
    token = PemFile(f"{service_account}/token", "the service account's token")
    try:
        namespace = read_text(f"{service_account}/namespace", "the service account's namespace").strip()
    except ConfigError as error:
        cure = "does the pod's service account have automountServiceAccountToken: false?"
        raise ConfigError(f"{error}; {cure}") from error
    port = _service_port(environ)
    return Endpoint(
        host=host,
        port=port,
        ca=PemFile(f"{service_account}/ca.crt", "the service account's CA"),
        source=StoredCredentials(token_file=token),
        origin="the pod's service account",
        namespace=namespace or "default",
        proxy=environment_proxy(environ, host, port),
    )


def environment_proxy(environ: Mapping[str, str], host: str, port: int) -> Proxy | None:
    """The proxy that the environment wants for this server, if any. Raises ConfigError."""
    for name in ("HTTPS_PROXY", "https_proxy"):
        if text := environ.get(name, ""):
            # See there.
            from mpirt.kubeapi.access.proxies import is_excluded, read_proxy  # noqa: PLC0415

            excluded = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
            return None if is_excluded(host, port, excluded) else read_proxy(text, name)
    return None


def as_host(text: str, field: str) -> str:
    """Check that the text can be a host: it goes into a request header."""
    if text.isascii() and text.isprintable() and " " not in text:
        return text
    raise ConfigError(f"{field} is not a host: {text[:40]!r}")


def as_port(text: str, field: str) -> int:
    """Check that the text is a port."""
    if text.isascii() and text.isdigit() and len(text) <= len(str(_LAST_PORT)) and 0 < int(text) <= _LAST_PORT:
        return int(text)
    raise ConfigError(f"{field}: invalid port {text[:20]!r} (1 to 65535)")


def _service_port(environ: Mapping[str, str]) -> int:
    for variable in ("KUBERNETES_SERVICE_PORT_HTTPS", "KUBERNETES_SERVICE_PORT"):
        if text := environ.get(variable, ""):
            return as_port(text, variable)
    return HTTPS_PORT
