"""
Credentials from a program: the exec plugin of a kubeconfig (client.authentication.k8s.io/v1 and v1beta1).

Owns: what the program is told, how long it may take, what it answers, and until when the answer holds.
Imported only when a kubeconfig is used.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from mpirt.errors import ConfigError
from mpirt.kubeapi.answers import one_line
from mpirt.kubeapi.credentials import Certificate, Credentials, PemFile, PemText, Secret, as_token
from mpirt.kubeapi.deadline import Deadline
from mpirt.kubeapi.fields import Fields
from mpirt.values import value

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
# Cloud providers' programs take one to five seconds; one that takes longer has lost its network.
_LONGEST = 60.0
# A token that is about to expire is as good as expired: the request that carries it still has to arrive.
_MARGIN = 10.0


@value
class ClusterInfo:
    """What a plugin that asks for it is told of the cluster."""

    server: str
    ca: PemFile | PemText | None
    server_name: str
    settings: object


@value
class Plugin:
    """A program that prints credentials."""

    command: str
    """As the kubeconfig has it, for messages."""
    path: str
    args: list[str]
    environ: dict[str, str]
    version: str
    field: str
    hint: str


class PluginCredentials:
    """Runs the plugin when its last answer has expired, or was not accepted."""

    __slots__ = ("_expires", "_held", "_now", "_plugin")

    def __init__(self, plugin: Plugin, *, now: Callable[[], float] = time.time) -> None:
        self._plugin = plugin
        self._now = now
        self._held: Credentials | None = None
        self._expires: float | None = None

    def credentials(self, deadline: Deadline) -> Credentials:
        """What the plugin said last, or says now."""
        if self._held is None or (self._expires is not None and self._now() >= self._expires - _MARGIN):
            output = _run(self._plugin, deadline)
            self._held, self._expires = _read_answer(output, self._plugin)
        return self._held

    def renew(self) -> None:
        """Have the plugin run again the next time."""
        self._held = None


def plugin_source(
    fields: Fields, folder: Path, environ: Mapping[str, str], cluster: ClusterInfo
) -> PluginCredentials:
    """Read the `exec` part of a user. Raises ConfigError; the program is not run yet."""
    version = fields.needed("apiVersion")
    if version not in _VERSIONS:
        raise ConfigError(f"{fields.where('apiVersion')}: only {' and '.join(_VERSIONS)} are supported")
    if fields.text("interactiveMode") == "Always":
        problem = "Always is not supported: the terminal belongs to the job"
        raise ConfigError(f"{fields.where('interactiveMode')}: {problem}; use another kind of credentials")
    command = fields.needed("command")
    plugin_environ = {**environ, **{row.needed("name"): row.text("value") for row in fields.rows("env")}}
    plugin_environ["KUBERNETES_EXEC_INFO"] = _exec_info(
        version, cluster if fields.flag("provideClusterInfo") else None
    )
    # A path with a slash starts from the kubeconfig's folder, a bare name is looked for on PATH.
    found = str(folder / command) if "/" in command else shutil.which(command, path=plugin_environ.get("PATH"))
    plugin = Plugin(
        command=command,
        path=found or command,
        args=fields.texts("args"),
        environ=plugin_environ,
        version=version,
        field=fields.where("command"),
        hint=one_line(fields.text("installHint")),
    )
    return PluginCredentials(plugin)


def _exec_info(version: str, cluster: ClusterInfo | None) -> str:
    spec: dict[str, object] = {"interactive": False}
    if cluster is not None:
        about: dict[str, object] = {"server": cluster.server}
        if cluster.ca is not None:
            about["certificate-authority-data"] = b64encode(cluster.ca.read().encode()).decode()
        if cluster.server_name:
            about["tls-server-name"] = cluster.server_name
        if cluster.settings is not None:
            about["config"] = cluster.settings
        spec["cluster"] = about
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": spec})


def _run(plugin: Plugin, deadline: Deadline) -> bytes:
    """Run it without a terminal and the job's stdin. What it prints to stderr is shown only when it fails."""
    time_left = deadline.within(_LONGEST)
    name = f"{plugin.field}: the credential plugin {plugin.command}"
    try:
        with subprocess.Popen(
            [plugin.path, *plugin.args],
            env=plugin.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as program:
            try:
                output, errors = program.communicate(timeout=time_left.left())
            except subprocess.TimeoutExpired as error:
                raise ConfigError(
                    f"{name} did not answer within {time_left}; run it by hand to see why"
                ) from error
            finally:
                _end(program)
    except OSError as error:
        hint = f"; {plugin.hint}" if plugin.hint else ""
        raise ConfigError(f"{name} can't be run: {error.strerror}{hint}") from error
    if program.returncode != 0:
        said = one_line(errors.decode("utf-8", "replace"))
        raise ConfigError(f"{name} failed with code {program.returncode}{f' ({said})' if said else ''}")
    return output


def _end(program: subprocess.Popen[bytes]) -> None:
    """Leave none of it behind: it may have started programs of its own that hold its output open."""
    if program.poll() is None:
        os.killpg(program.pid, 9)
        for pipe in (program.stdout, program.stderr):
            if pipe is not None:
                pipe.close()


def _read_answer(output: bytes, plugin: Plugin) -> tuple[Credentials, float | None]:
    origin = f"{plugin.field}: the answer of the credential plugin {plugin.command}"
    try:
        value = json.loads(output)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{origin} is not JSON") from error
    answer = Fields(value, file=origin)
    if answer.text("kind") != "ExecCredential" or answer.text("apiVersion") != plugin.version:
        raise ConfigError(f"{origin} is not an ExecCredential of {plugin.version}")
    status = answer.table("status")
    certificate = _certificate(status)
    token = as_token(status.text("token"), status.where("token")) if status.has("token") else None
    if token is None and certificate is None:
        raise ConfigError(f"{status.where('')}: holds neither a token nor a client certificate")
    return Credentials(token, certificate), _expiry(status)


def _certificate(status: Fields) -> Certificate | None:
    chain, key = status.text("clientCertificateData"), status.text("clientKeyData")
    if bool(chain) != bool(key):
        raise ConfigError(f"{status.where('clientKeyData' if chain else 'clientCertificateData')}: is missing")
    return Certificate(chain, Secret(key), status.where("clientCertificateData")) if chain else None


def _expiry(status: Fields) -> float | None:
    text = status.text("expirationTimestamp")
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{status.where('expirationTimestamp')}: is not a time as RFC 3339 has it") from error
    if moment.tzinfo is None:
        raise ConfigError(f"{status.where('expirationTimestamp')}: has no time zone")
    return moment.timestamp()
