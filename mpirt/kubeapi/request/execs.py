"""
The request that turns a connection into the WebSocket of an exec.

Owns: the upgrade and what a refusal of it means. Apart from api.py, because hashlib costs 0.7 MB, and
mpirt-discover does without.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from mpirt.errors import PeerError
from mpirt.kubeapi.access.credentials import Credentials
from mpirt.kubeapi.access.steps import Deadline, Steps, run
from mpirt.kubeapi.request.answers import ProtocolRefused, failure_error, read_failure
from mpirt.kubeapi.request.api import Api
from mpirt.kubeapi.request.asks import Ask
from mpirt.kubeapi.request.http1 import OK, SWITCHING_PROTOCOLS, Head
from mpirt.kubeapi.request.stream import TlsStream
from mpirt.kubeapi.request.websocket import accepted_protocol, new_key, upgrade_headers
from mpirt.values import Value

_FORBIDDEN = 403


class Upgraded(Value):
    """A connection that has become a WebSocket."""

    stream: TlsStream
    protocol: str
    leftover: bytes
    """The first bytes of frames that came together with the answer."""


class ExecApi(Api):
    """An Api that opens execs too."""

    __slots__ = ()

    def open_exec(
        self, ask: Ask, protocols: Sequence[str], deadline: Deadline, *, credentials_by: Deadline | None = None
    ) -> Upgraded:
        """
        Turn a connection into the WebSocket of an exec.

        A credential plugin may need longer than a connection: with `credentials_by` it has until then, and the
        `deadline` is for everything else.

        Raises ProtocolRefused if the server speaks no such sub-protocol, and what get() raises.
        """
        return run(self.upgrade(ask, protocols, deadline, credentials_by))

    def upgrade(
        self, ask: Ask, protocols: Sequence[str], deadline: Deadline, credentials_by: Deadline | None = None
    ) -> Steps[Upgraded]:
        """The same in steps."""
        key = new_key(os.urandom(16))

        def once(credentials: Credentials, deadline: Deadline) -> Steps[Upgraded]:
            request = self.dialer.request(ask.target, credentials, upgrade_headers(key, protocols))
            stream, reader = answered = yield from self._exchange(request, credentials, deadline)
            if reader.head is not None and reader.head.status == SWITCHING_PROTOCOLS:
                self.dialer.remember(stream)
                try:
                    return Upgraded(stream, accepted_protocol(reader.head, key, protocols), reader.leftover)
                except PeerError:
                    stream.close()
                    raise
            raise self._upgrade_error(ask, *self._settled(answered, credentials), protocols)

        return self._with_credentials(once, deadline, credentials_by)

    def _upgrade_error(self, ask: Ask, head: Head, body: bytes, protocols: Sequence[str]) -> Exception:
        if head.status == OK:
            return PeerError(
                f"could not {ask.doing}: no upgrade to WebSocket (200); does a proxy drop Upgrade headers?"
            )
        failure = read_failure(head, body)
        if head.status == _FORBIDDEN and not failure.is_status and not failure.message:
            offered = " nor ".join(protocols)
            return ProtocolRefused(
                f"could not {ask.doing}: {offered} is not accepted (403 without a reason)", failure
            )
        return failure_error(failure, ask, origin=self.dialer.endpoint.origin)
