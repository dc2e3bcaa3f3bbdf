"""Clients of the loopback API server. Owns: how tests of this layer make them, and what they expect of errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from mpirt.errors import MpirtError
from mpirt.kubeapi.access.credentials import Certificate, Credentials, PemText, Secret
from mpirt.kubeapi.access.endpoint import Endpoint
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.answers import JsonObject
from mpirt.kubeapi.request.api import Api
from mpirt.kubeapi.request.execs import ExecApi
from tests.apiserver.certificates import HOST, Pem
from tests.apiserver.server import ApiServer

if TYPE_CHECKING:
    from mpirt.kubeapi.access.credentials import CredentialSource
    from mpirt.kubeapi.access.steps import Steps

Connect = Callable[[Endpoint], ExecApi]
ReadPod = Callable[[], JsonObject]


def soon() -> Deadline:
    """More than anything here takes, and less than anybody waits for a test that hangs."""
    return Deadline(20.0)


@dataclass(frozen=True)
class Said:
    """An error: its type exactly, and its text or a part of it."""

    error: type[MpirtError]
    text: str = ""
    part: str = ""

    def by(self, action: Callable[[], object]) -> MpirtError:
        """Expect it of the action."""
        with pytest.raises(self.error) as caught:
            action()
        message = str(caught.value)
        assert type(caught.value) is self.error
        assert message == (self.text or message)
        assert self.part in message
        assert "\n" not in message
        return caught.value


def reading(client: Api) -> ReadPod:
    """Reads the pod w-0."""
    return lambda: client.get_pod("ml", "w-0", soon())


class _Replaced:
    """Credentials that are replaced: each renewal brings the next ones, the last stay."""

    def __init__(self, *found: Credentials) -> None:
        self._found = list(found)

    def credentials(self, deadline: Deadline) -> Steps[Credentials]:  # noqa: ARG002  the protocol has it
        yield from ()
        return self._found[0]

    def renew(self, rejected: Credentials | None = None) -> None:  # noqa: ARG002  the protocol has it
        if len(self._found) > 1:
            self._found.pop(0)


class Rotating(_Replaced):
    """Tokens. "" is none."""

    def __init__(self, *tokens: str) -> None:
        super().__init__(*(Credentials(Secret(token) if token else None) for token in tokens))


class Certificates(_Replaced):
    """Client certificates."""

    def __init__(self, *pems: Pem) -> None:
        shown = [Certificate(pem.chain, Secret(pem.key), "client-certificate-data") for pem in pems]
        super().__init__(*(Credentials(None, certificate) for certificate in shown))


def endpoint_of(server: ApiServer, source: CredentialSource | None = None, *, host: str = HOST) -> Endpoint:
    """The server as a client knows it."""
    return Endpoint(
        host=host,
        port=server.port,
        ca=PemText(Secret(server.authority.ca), "the test's CA"),
        source=source or Rotating(server.token),
        origin="the test's kubeconfig",
        namespace="ml",
        base_path=server.base_path,
    )
