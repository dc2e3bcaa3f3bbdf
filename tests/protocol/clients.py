"""Clients of the loopback API server. Owns: how tests of this layer make them, and what they expect of errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from mpirt.errors import MpirtError
from mpirt.kubeapi.answers import JsonObject
from mpirt.kubeapi.credentials import Credentials, PemText, Secret
from mpirt.kubeapi.deadline import Deadline
from mpirt.kubeapi.endpoint import Endpoint
from mpirt.kubeapi.execs import ExecApi
from tests.apiserver.certificates import HOST
from tests.apiserver.server import ApiServer

if TYPE_CHECKING:
    from mpirt.kubeapi.credentials import CredentialSource

Connect = Callable[[Endpoint], ExecApi]
ReadPod = Callable[[], JsonObject]


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


class Rotating:
    """Credentials that are replaced: each renewal brings the next token, the last one stays. "" is none."""

    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)

    def credentials(self, deadline: Deadline) -> Credentials:  # noqa: ARG002  the protocol has it
        return Credentials(Secret(self._tokens[0]) if self._tokens[0] else None)

    def renew(self) -> None:
        if len(self._tokens) > 1:
            self._tokens.pop(0)


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
