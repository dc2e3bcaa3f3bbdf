"""What a dialer remembers of its connections. Reading a session costs memory that some Pythons lose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

from mpirt.kubeapi.access.credentials import Credentials, Secret
from mpirt.kubeapi.access.endpoint import Endpoint
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.request.stream import TlsStream

if TYPE_CHECKING:
    from mpirt.kubeapi.access.steps import Deadline, Steps


class Token:
    """Credentials that nobody asks for."""

    def credentials(self, deadline: Deadline) -> Steps[Credentials]:  # noqa: ARG002  the protocol has it
        yield from ()
        return Credentials(token=Secret("none"))

    def renew(self, rejected: Credentials | None = None) -> None: ...


@dataclass
class Connection:
    """What TLS tells of a connection."""

    is_resumed: bool
    reads: int = 0

    @property
    def session(self) -> object:
        self.reads += 1
        return object()


@dataclass
class Time:
    """A clock that a test sets."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def dialer(time: Time) -> Dialer:
    endpoint = Endpoint(host="127.0.0.1", port=1, ca=None, source=Token(), origin="the test")
    return Dialer(endpoint, clock=time)


def remembered(dialer: Dialer, *, is_resumed: bool) -> int:
    """How often the session of a connection was read."""
    connection = Connection(is_resumed)
    dialer.remember(cast("TlsStream", connection))
    return connection.reads


def test_a_session_that_serves_is_read_once(dialer: Dialer) -> None:
    first = remembered(dialer, is_resumed=False)

    assert [first, *(remembered(dialer, is_resumed=True) for _ in range(5))] == [1, 0, 0, 0, 0, 0]


def test_sessions_that_never_serve_are_not_read_again_at_once(dialer: Dialer) -> None:
    assert [remembered(dialer, is_resumed=False) for _ in range(5)] == [1, 0, 0, 0, 0]


def test_another_is_read_when_one_that_has_served_does_so_no_more(dialer: Dialer, time: Time) -> None:
    remembered(dialer, is_resumed=False)
    reads = []
    for _ in range(4):
        time.now += 30.0
        reads.append(remembered(dialer, is_resumed=False))

    assert reads == [0, 1, 0, 1]


def test_a_session_is_read_again_after_everything_was_forgotten(dialer: Dialer) -> None:
    remembered(dialer, is_resumed=False)
    dialer.forget()

    assert remembered(dialer, is_resumed=False) == 1
