"""An exec that is opened in a poll loop: it never waits, and ends as the one that waits does."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from mpirt.kubeapi.access.credentials import Credentials
from mpirt.kubeapi.access.steps import Deadline, Pending, Wait
from mpirt.kubeapi.request.answers import TimedOut
from mpirt.kubeapi.request.asks import exec_in_pod
from mpirt.kubeapi.request.dial import Dialer, by_name
from mpirt.kubeapi.request.execs import ExecApi, Upgraded
from mpirt.kubeapi.request.stream import Address
from tests.apiserver.channel import V4
from tests.apiserver.door import Deaf
from tests.apiserver.faults import Fault, Hangup, Silence
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.clients import Connect, Rotating, endpoint_of, soon

if TYPE_CHECKING:
    from mpirt.kubeapi.access.steps import Steps

ASK = exec_in_pod("ml", "w-0", container="worker", command=["/bin/sh", "-c", "echo out"])
SHORT = 0.4
# For a connection on a busy machine.
ENOUGH = 2.0


class Slow(Rotating):
    """A token that takes its time, as a credential plugin does."""

    def __init__(self, token: str, seconds: float) -> None:
        super().__init__(token)
        self._seconds = seconds

    def credentials(self, deadline: Deadline) -> Steps[Credentials]:
        ready = deadline.within(self._seconds)
        while not ready.passed():
            yield Wait(-1, 0, ready)
        return (yield from super().credentials(deadline))


@pytest.fixture(autouse=True)
def _worker(apiserver: ApiServer) -> None:
    apiserver.world.put(pod("w-0"))


def opened(dial: Pending[Upgraded]) -> Upgraded:
    """Turn a poll loop until the exec is open."""
    while not dial.advance():
        poll = select.poll()
        descriptor, wants, seconds = dial.waits()
        if descriptor >= 0:
            poll.register(descriptor, wants)
        poll.poll(int(seconds * 1000) + 1)
    assert dial.result is not None
    return dial.result


def dial(api: ExecApi, seconds: float = 20.0, credentials_by: Deadline | None = None) -> Pending[Upgraded]:
    return Pending(api.upgrade(ASK, [V4], Deadline(seconds), credentials_by))


def with_addresses(server: ApiServer, *addresses: tuple[str, int]) -> ExecApi:
    """A client that finds these addresses for the server's name."""
    found = [Address(socket.AF_INET, address) for address in addresses]
    endpoint = endpoint_of(server, host="localhost")
    return ExecApi(Dialer(endpoint, look_up=lambda _host, _port: found))


class TestAnOpenExec:
    def test_is_what_the_last_step_returns(self, api: ExecApi) -> None:
        upgraded = opened(dial(api))
        upgraded.stream.close()

        assert upgraded.protocol == V4

    def test_begins_with_what_the_first_one_has_agreed_on(self, api: ExecApi) -> None:
        streams = [opened(dial(api)).stream for _ in range(3)]
        resumed = [stream.is_resumed for stream in streams]
        for stream in streams:
            stream.close()

        assert resumed == [False, True, True]

    def test_takes_the_connection_that_read_the_pod(self, apiserver: ApiServer, api: ExecApi) -> None:
        api.get_pod("ml", "w-0", soon())

        opened(dial(api)).stream.close()

        assert apiserver.connections == 1

    def test_takes_a_new_connection_where_the_kept_one_breaks(self, apiserver: ApiServer, api: ExecApi) -> None:
        api.get_pod("ml", "w-0", soon())
        apiserver.on("exec", Hangup())

        opened(dial(api)).stream.close()

        assert (apiserver.connections, len(apiserver.asked("exec"))) == (2, 2)

    def test_may_take_a_second_token(self, apiserver: ApiServer, connect: Connect) -> None:
        client = connect(endpoint_of(apiserver, Rotating("stale", apiserver.token)))

        opened(dial(client)).stream.close()

        assert [request.headers["authorization"] for request in apiserver.asked("exec")] == [
            "Bearer stale",
            f"Bearer {apiserver.token}",
        ]

    def test_may_take_a_second_address(self, apiserver: ApiServer) -> None:
        # Nothing listens there.
        with socket.create_server(("127.0.0.1", 0)) as closed:
            nobody = closed.getsockname()
        client = with_addresses(apiserver, nobody, ("127.0.0.1", apiserver.port))

        opened(dial(client)).stream.close()

        assert apiserver.connections == 1

    def test_leaves_a_silent_address_its_share_of_the_time_only(self, apiserver: ApiServer) -> None:
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            client = with_addresses(apiserver, deaf.getsockname(), ("127.0.0.1", apiserver.port))

            opened(dial(client, 2 * SHORT)).stream.close()


class TestCredentials:
    def test_may_take_longer_than_the_connection(self, apiserver: ApiServer, connect: Connect) -> None:
        client = connect(endpoint_of(apiserver, Slow(apiserver.token, ENOUGH)))

        opened(dial(client, ENOUGH, soon())).stream.close()

    def test_have_the_time_of_the_connection_otherwise(self, apiserver: ApiServer, connect: Connect) -> None:
        client = connect(endpoint_of(apiserver, Slow(apiserver.token, SHORT)))

        with pytest.raises(TimedOut):
            opened(dial(client, SHORT))


class TestAStep:
    @pytest.mark.parametrize("fault", [pytest.param(None, id="TLS"), pytest.param(Silence(), id="the answer")])
    def test_never_waits(self, apiserver: ApiServer, api: ExecApi, fault: Fault | None) -> None:
        if fault is None:
            apiserver.at_the_door(Deaf())
        else:
            apiserver.on("exec", fault)
        dialing = dial(api)

        steps = [dialing.advance() for _ in range(200)]
        dialing.close()

        assert steps == [False] * 200

    def test_never_waits_for_a_name(self, apiserver: ApiServer) -> None:
        gate = threading.Event()

        def slow(host: str, port: int) -> Sequence[Address]:
            assert gate.wait(20.0)
            return by_name(host, port)

        endpoint = endpoint_of(apiserver, host="localhost")
        dialing = dial(ExecApi(Dialer(endpoint, look_up=slow)))
        steps = [dialing.advance() for _ in range(200)]
        gate.set()

        opened(dialing).stream.close()

        assert steps == [False] * 200

    def test_is_due_at_once_at_the_beginning(self, api: ExecApi) -> None:
        dialing = dial(api)

        assert dialing.waits() == (-1, 0, 0.0)


class TestClosing:
    def test_ends_the_connection(self, apiserver: ApiServer, api: ExecApi) -> None:
        apiserver.on("exec", Silence())
        dialing = dial(api)
        while not apiserver.asked("exec"):
            dialing.advance()
        descriptor = dialing.waits()[0]

        dialing.close()

        assert dialing.waits()[0] == -1
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)

    def test_before_the_first_step_opens_no_connection(self, apiserver: ApiServer, api: ExecApi) -> None:
        dial(api).close()

        assert apiserver.connections == 0
