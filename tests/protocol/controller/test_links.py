"""What is asked before a request is sent, on a socket that nobody answers on."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mpirt.controller.cluster.link import Away, Link, Request, connect
from mpirt.controller.monitoring.metrics import Metrics

_WITHIN = 10.0


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(_WITHIN)
        yield made


@pytest.fixture
def link(listener: socket.socket, tmp_path: Path) -> Iterator[Link]:
    server = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "it", "user": {"token": "a-token"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    made = connect(str(kubeconfig), count=Metrics().called)
    yield made
    made.close()


def test_whether_it_may_be_sent_is_asked_when_the_connection_stands(link: Link, listener: socket.socket) -> None:
    peers = []

    def may() -> bool:
        peer, _ = listener.accept()
        peers.append(peer)
        return False

    with pytest.raises(Away, match="not sent: this process may no longer act"):
        link.ask(Request("create", "POST", "/api/v1/namespaces/ml/pods", "pods", body={}, within=_WITHIN, may=may))

    [peer] = peers
    with peer:
        peer.settimeout(_WITHIN)
        assert peer.recv(1) == b""


def test_what_may_be_sent_is_sent_at_once(link: Link, listener: socket.socket) -> None:
    body = {"metadata": {"name": "w-0"}}
    arrived = []

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(_WITHIN)
            arrived.append(peer.recv(1 << 16))
            peer.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")

    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve)
        answer = link.ask(
            Request("create", "POST", "/api/v1/namespaces/ml/pods", "pods", body=body, within=_WITHIN)
        )
        served.result()

    head, _, rest = arrived[0].partition(b"\r\n\r\n")
    assert answer.code == 201
    assert head.startswith(b"POST /api/v1/namespaces/ml/pods HTTP/1.1\r\n")
    assert json.loads(rest) == body
