"""
The credentials for the API server, which are never shown.

Owns: tokens and client certificates, and reading them anew from their files each time they are needed (the kubelet
replaces them under a running program). Running a credential plugin is plugin.py's business.
"""

from __future__ import annotations

import os
from typing import Protocol

from mpirt.errors import ConfigError
from mpirt.kubeapi.access.steps import Deadline, Steps
from mpirt.values import Value


class CredentialSource(Protocol):
    """Where credentials come from; asked at every connection."""

    def credentials(self, deadline: Deadline) -> Steps[Credentials]:
        """Whatever is valid now. Raises ConfigError; a PluginFailed may pass."""

    def renew(self, rejected: Credentials) -> None:
        """Forget these if they are remembered: the API server did not accept them."""


class PluginFailed(ConfigError):
    """A credential plugin has failed, or did not answer in time: the next run may do better."""


# Real tokens are one to four KB and certificates a few; a log file given by mistake should not be read whole.
_FILE_LIMIT = 1024 * 1024


class Secret:
    """Text that must not be seen. Printing or comparing it by accident shows nothing."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(...)"

    def reveal(self) -> str:
        """The text itself, for the one line of code that sends it."""
        return self._text


class Certificate(Value):
    """A client certificate and its key as PEM, and the words for where they came from."""

    chain: str
    key: Secret
    origin: str


class Credentials(Value):
    """What authenticates us: either may be missing."""

    token: Secret | None = None
    certificate: Certificate | None = None


class PemFile(Value):
    """PEM in a file. `field` names the setting with its path."""

    path: str
    field: str

    @property
    def origin(self) -> str:
        """Where it comes from, for messages."""
        return f"{self.field} {self.path}"

    def read(self) -> str:
        """Read the file."""
        return read_text(self.path, self.field)


class PemText(Value):
    """PEM that stood in a kubeconfig itself."""

    text: Secret
    field: str

    @property
    def origin(self) -> str:
        """Where it comes from, for messages."""
        return self.field

    def read(self) -> str:
        """The text."""
        return self.text.reveal()


class StoredCredentials:
    """Credentials that stand in files or in a kubeconfig. A token file goes before a token, as kubectl has it."""

    __slots__ = ("_certificate", "_key", "_token", "_token_file")

    def __init__(
        self,
        *,
        token: Secret | None = None,
        token_file: PemFile | None = None,
        certificate: PemFile | PemText | None = None,
        key: PemFile | PemText | None = None,
    ) -> None:
        self._token = token
        self._token_file = token_file
        self._certificate = certificate
        self._key = key

    def credentials(self, deadline: Deadline) -> Steps[Credentials]:  # noqa: ARG002  files are read at once
        """Read the files anew."""
        yield from ()
        token = self._token
        if self._token_file is not None:
            token = as_token(self._token_file.read(), self._token_file.origin)
        if self._certificate is None or self._key is None:
            return Credentials(token)
        chain, key = self._certificate.read(), Secret(self._key.read())
        return Credentials(token, Certificate(chain, key, self._certificate.field))

    def renew(self, rejected: Credentials) -> None:
        """Nothing is remembered here."""


def as_token(text: str, origin: str) -> Secret:
    """Check that the text can be a bearer token: it goes into a request header."""
    token = text.strip()
    if not token:
        raise ConfigError(f"{origin} is empty: it must hold a bearer token")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(
            f"{origin} does not hold a bearer token: there are characters in it that a token can't have"
        )
    return Secret(token)


def read_text(path: str, field: str) -> str:
    """Read a small file. Raises ConfigError that names the field which asked for it."""
    try:
        with open(path, "rb") as file:
            data = file.read(_FILE_LIMIT + 1)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "not a usable path"
        raise ConfigError(f"cannot read {field} {path}: {reason}") from error
    if len(data) > _FILE_LIMIT:
        raise ConfigError(f"{field} {path} is larger than {_FILE_LIMIT} bytes: is it the right file?")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{field} {path} is not text: is it the right file?") from error
