"""What an API server asks of its clients beside its answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mpirt.controller.cluster.link import Answer, Away, Link, Request, Stream, connect
from mpirt.controller.monitoring.metrics import Metrics
from mpirt.errors import ConfigError
from tests.apiserver.certificates import HOST, Authority
from tests.apiserver.faults import Raw
from tests.apiserver.listener import PATIENCE
from tests.apiserver.objects import ObjectServer
from tests.apiserver.proxy import Proxy
from tests.apiserver.server import ApiServer


@pytest.fixture
def link(server: ObjectServer, tmp_path: Path) -> Iterator[Link]:
    made = connect(str(server.kubeconfig(tmp_path)), count=Metrics().called)
    yield made
    made.close()


def pods(link: Link, **query: str) -> Answer:
    """The answer to a list, or the no to a watch."""
    request = Request("list", "GET", "/api/v1/namespaces/ml/pods", "pods", query=query)
    answer = link.watch(request) if query else link.ask(request)
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize(
    ("asked", "honoured"),
    [
        pytest.param(7, 7, id="seconds"),
        pytest.param(None, 0, id="nothing"),
        pytest.param(86400, 300, id="more than is reasonable"),
        # Servers don't, but a proxy may.
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", 0, id="a date"),
    ],
)
def test_the_wait_that_comes_with_a_no_is_known(
    server: ObjectServer, link: Link, asked: int | str | None, honoured: float
) -> None:
    server.refuse("list", "pods", 429, "TooManyRequests", "later", retryAfterSeconds=asked)
    server.refuse("watch", "pods", 429, "TooManyRequests", "later", retryAfterSeconds=asked)

    for answer in (pods(link), pods(link, watch="1")):
        assert (answer.code, answer.retry_after) == (429, honoured)


def test_a_good_answer_asks_for_no_wait(link: Link) -> None:
    assert pods(link).retry_after == 0


def rewritten(path: Path, *, user: dict[str, Any] | None = None, **cluster: Any) -> str:
    """The kubeconfig with another user, and with changes to its cluster."""
    config = json.loads(path.read_text())
    config["clusters"][0]["cluster"] |= cluster
    config["users"][0]["user"] = user or config["users"][0]["user"]
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        pytest.param({"server": "http://127.0.0.1:8080"}, "does not begin with https://", id="plain text"),
        pytest.param({"insecure-skip-tls-verify": True}, "the API server is always verified", id="unverified"),
    ],
)
def test_a_connection_that_anyone_could_listen_to_is_refused(
    server: ObjectServer, tmp_path: Path, cluster: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        connect(rewritten(server.kubeconfig(tmp_path), **cluster), count=Metrics().called)


def test_a_request_that_was_not_authenticated_is_sent_again_with_newer_credentials(
    server: ObjectServer, tmp_path: Path
) -> None:
    plugin = tmp_path / "plugin"
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    text = json.dumps(answer | {"status": {"token": "TOKEN"}}).replace("TOKEN", "$$")
    plugin.write_text(f"#!/bin/sh\ncat <<END\n{text}\nEND\n")
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": answer["apiVersion"], "command": str(plugin)}}
    renewing = connect(rewritten(server.kubeconfig(tmp_path), user=user), count=Metrics().called)
    server.refuse("list", "pods", 401, "Unauthorized", "expired")

    answered = pods(renewing)
    renewing.close()

    assert (answered.code, server.asked()) == (200, [("list", "pods")] * 2)


def test_the_same_credentials_are_not_sent_twice(server: ObjectServer, link: Link) -> None:
    server.refuse("list", "pods", 401, "Unauthorized", "expired")

    assert (pods(link).code, server.asked()) == (401, [("list", "pods")])


def test_a_no_that_breaks_off_is_no_answer(apiserver: ApiServer, tmp_path: Path) -> None:
    broken = Raw(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 100\r\n\r\nhalf")
    apiserver.on("watch", broken)
    link = connect(str(apiserver.kubeconfig(tmp_path)), count=Metrics().called)

    with pytest.raises(Away):
        pods(link, watch="1")
    link.close()


def test_a_watch_through_a_proxy_with_tls_ends_when_it_is_closed(
    apiserver: ApiServer, authority: Authority, tmp_path: Path
) -> None:
    proxy = Proxy((HOST, apiserver.port), authority=authority)
    cluster: dict[str, Any] = {"proxy-url": proxy.url}
    link = connect(rewritten(apiserver.kubeconfig(tmp_path), **cluster), count=Metrics().called)
    query = {"watch": "1", "resourceVersion": pods(link).body["metadata"]["resourceVersion"]}
    where = "/api/v1/namespaces/ml/pods"
    stream = link.watch(Request("watch", "GET", where, "pods", query=query, within=10 * PATIENCE))
    assert isinstance(stream, Stream)
    with ThreadPoolExecutor(1) as thread:
        lines = thread.submit(list, stream.lines())

        stream.close()

        assert isinstance(lines.exception(PATIENCE), Away | None)
    assert proxy.asked
    link.close()
    proxy.stop()


def test_a_replaced_ca_is_read_after_a_connection_that_it_did_not_verify(
    server: ObjectServer, authority: Authority, tmp_path: Path
) -> None:
    ca = tmp_path / "replaced.crt"
    ca.write_text(Authority().ca)
    cluster: dict[str, Any] = {"certificate-authority": str(ca)}
    link = connect(rewritten(server.kubeconfig(tmp_path), **cluster), count=Metrics().called)
    with pytest.raises(Away, match="certificate verify failed"):
        pods(link)

    ca.write_text(authority.ca)

    assert pods(link).code == 200
    link.close()
