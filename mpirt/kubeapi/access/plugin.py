"""
Credentials from a program: the exec plugin of a kubeconfig (client.authentication.k8s.io/v1 and v1beta1).

Owns: the program's environment, how long it may take, what it answers, and until when the answer holds. An answer
is kept in memory only: the switchboard asks once for all its sessions.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from mpirt.errors import ConfigError, one_line
from mpirt.fields import FileFields as Fields
from mpirt.kubeapi.access.credentials import (
    Certificate,
    Credentials,
    PemFile,
    PemText,
    PluginFailed,
    Secret,
    as_token,
)
from mpirt.kubeapi.access.steps import Deadline, Steps, Wait
from mpirt.values import Value

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
# Cloud providers' programs take one to five seconds; one that takes longer has lost its network.
_LONGEST = 60.0
# A plugin that fails is run once more, after so long.
_PAUSE = 0.5
# How often to see whether a program that has closed its output has ended.
_LOOK_AGAIN = 0.05
# An ExecCredential with a certificate is a few KB.
_ANSWER_LIMIT = 1024 * 1024
# A token that is about to expire is as good as expired: the request that carries it still has to arrive.
_MARGIN = 10.0


class ClusterInfo(Value):
    """What a plugin gets to know of the cluster, if it asks for that."""

    server: str
    ca: PemFile | PemText | None
    server_name: str
    settings: object
    proxy_url: str = ""


class Plugin(Value):
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
    """Runs the plugin when its last answer has expired, or was not accepted: once for all who ask meanwhile."""

    __slots__ = ("_expires", "_held", "_is_running", "_now", "_plugin")

    def __init__(self, plugin: Plugin, *, now: Callable[[], float] = time.time) -> None:
        self._plugin = plugin
        self._now = now
        self._held: Credentials | None = None
        self._expires: float | None = None
        self._is_running = False

    def credentials(self, deadline: Deadline) -> Steps[Credentials]:
        """What the plugin said last, or says now."""
        deadline = deadline.within(_LONGEST)
        while self._held is None or (self._expires is not None and self._now() >= self._expires - _MARGIN):
            if not self._is_running:
                return (yield from self._run(deadline))
            if deadline.passed():
                raise PluginFailed(
                    f"{_name(self._plugin)} is still running for another command after {deadline}; "
                    "run it by hand to see why"
                )
            yield Wait(-1, 0, deadline.within(_LOOK_AGAIN))
        return self._held

    def renew(self, rejected: Credentials) -> None:
        """Have the plugin run again the next time, unless it has run since it returned these."""
        if self._held == rejected:
            self._held = None

    def _run(self, deadline: Deadline) -> Steps[Credentials]:
        self._is_running = True
        try:
            output = yield from _answer(self._plugin, deadline)
        finally:
            self._is_running = False
        self._held, self._expires = _read_answer(output, self._plugin)
        return self._held


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
        if cluster.proxy_url:
            about["proxy-url"] = cluster.proxy_url
        if cluster.settings is not None:
            about["config"] = cluster.settings
        spec["cluster"] = about
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "spec": spec})


def _answer(plugin: Plugin, deadline: Deadline) -> Steps[bytes]:
    """Run it, and once more if it fails: cloud providers have bad moments."""
    for pause in (_PAUSE, 0.0):
        code, output, errors = yield from _run(plugin, deadline)
        if code == 0:
            return output
        if not pause or deadline.left() <= pause:
            break
        again = deadline.within(pause)
        while not again.passed():
            yield Wait(-1, 0, again)
    said = one_line(errors.decode("utf-8", "replace"))
    raise PluginFailed(f"{_name(plugin)} failed with code {code}{f' ({said})' if said else ''}")


def _run(plugin: Plugin, deadline: Deadline) -> Steps[tuple[int, bytes, bytes]]:
    """Run it without a terminal and the job's stdin. What it prints to stderr is shown only when it fails."""
    with os.fdopen(os.memfd_create("mpirt-plugin"), "w+b") as errors:
        try:
            # The `with` of a Popen waits.
            program = subprocess.Popen(
                [plugin.path, *plugin.args],
                env=plugin.environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            hint = f"; {plugin.hint}" if plugin.hint else ""
            raise ConfigError(f"{_name(plugin)} can't be run: {error.strerror}{hint}") from error
        try:
            output = yield from _output(program, plugin, deadline)
        finally:
            _end(program)
        errors.seek(0)
        return program.returncode, output, errors.read(_ANSWER_LIMIT)


def _output(program: subprocess.Popen[bytes], plugin: Plugin, deadline: Deadline) -> Steps[bytes]:
    """Everything that it prints until it has ended."""
    output = bytearray()
    is_open, fd = True, -1 if program.stdout is None else program.stdout.fileno()
    os.set_blocking(fd, False)
    while is_open or program.poll() is None:
        if deadline.passed():
            raise PluginFailed(f"{_name(plugin)} did not answer within {deadline}; run it by hand to see why")
        if not is_open:
            # It has closed its output, and will end soon.
            yield Wait(-1, 0, deadline.within(_LOOK_AGAIN))
            continue
        yield Wait(fd, select.POLLIN, deadline)
        try:
            piece = os.read(fd, 64 * 1024)
        except BlockingIOError:
            continue
        is_open = bool(piece)
        output += piece
        if len(output) > _ANSWER_LIMIT:
            raise ConfigError(f"{_name(plugin)} printed more than {_ANSWER_LIMIT} bytes")
    return bytes(output)


def _name(plugin: Plugin) -> str:
    return f"{plugin.field}: the credential plugin {plugin.command}"


def _end(program: subprocess.Popen[bytes]) -> None:
    """End it and its children, which may hold its output open."""
    if program.poll() is None:
        os.killpg(program.pid, 9)
        program.wait()
    if program.stdout is not None:
        program.stdout.close()


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
