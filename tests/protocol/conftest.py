"""The loopback API server for every test of this layer, and clients for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from mpirt.kubeapi.access.endpoint import Endpoint
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.request.execs import ExecApi
from tests.apiserver.certificates import Authority
from tests.apiserver.server import ApiServer
from tests.protocol.clients import Connect, ReadPod, endpoint_of, reading


@pytest.fixture(scope="session")
def authority() -> Authority:
    """The certificates of all servers."""
    return Authority()


def _serve(authority: Authority) -> Iterator[ApiServer]:
    server = ApiServer(authority)
    server.start()
    yield server
    server.stop()
    assert server.complaints == []


@pytest.fixture
def apiserver(authority: Authority) -> Iterator[ApiServer]:
    """A server that tells the truth until it is told otherwise."""
    yield from _serve(authority)


@pytest.fixture
def elsewhere(authority: Authority) -> Iterator[ApiServer]:
    """Another server, to be sent to."""
    yield from _serve(authority)


@pytest.fixture
def endpoint(apiserver: ApiServer) -> Endpoint:
    """The server as a client knows it."""
    return endpoint_of(apiserver)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients, and closes them at the end."""
    with contextlib.ExitStack() as stack:

        def make(endpoint: Endpoint) -> ExecApi:
            client = ExecApi(Dialer(endpoint))
            stack.callback(client.close)
            return client

        yield make


@pytest.fixture
def api(endpoint: Endpoint, connect: Connect) -> ExecApi:
    """A client of the server."""
    return connect(endpoint)


@pytest.fixture
def read_pod(api: ExecApi) -> ReadPod:
    """Reads the pod w-0."""
    return reading(api)
