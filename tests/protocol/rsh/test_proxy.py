"""A proxy that the environment or the kubeconfig names is on the way, and its name in what is said."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpirt.errors import ExitCode
from testbed.kube.wait import until
from tests.apiserver.certificates import HOST
from tests.apiserver.proxy import Proxy
from tests.promises import promise
from tests.protocol.rsh.agent import PATIENCE, Ground


@pytest.fixture
def proxy(ground: Ground) -> Iterator[Proxy]:
    """A proxy before the server."""
    made = Proxy((HOST, ground.server.port))
    yield made
    made.stop()


def change_cluster(ground: Ground, **fields: str) -> None:
    path = Path(ground.kubeconfig)
    config = json.loads(path.read_text(encoding="utf-8"))
    config["clusters"][0]["cluster"] |= {name.replace("_", "-"): text for name, text in fields.items()}
    path.write_text(json.dumps(config), encoding="utf-8")


@pytest.fixture
def far_away(ground: Ground) -> None:
    """The server has a name that only the proxy knows, for nobody's proxy leads to this machine."""
    change_cluster(ground, server=f"https://api.example:{ground.server.port}", tls_server_name=HOST)


@promise(
    "Commands go through the proxy that environment or kubeconfig name, as with kubectl.",
    of="mpirt-rsh",
    no_cluster="the test cluster has no proxy before it",
)
@pytest.mark.usefixtures("far_away")
def test_a_command_goes_through_the_proxy_of_the_environment(ground: Ground, proxy: Proxy) -> None:
    agent = ground.start("w-0", "echo out; cat", stdin=subprocess.PIPE, env={"HTTPS_PROXY": proxy.url})
    # The second one is for a look at the pod's labels, the third for the watch on its job's pods.
    until(lambda: ground.server.connections == 3, within=PATIENCE, what="three connections")
    ended = agent.wait(b"")

    assert (ended.code, ended.output, ended.errors) == (0, b"out\n", "")
    assert {line for line, _ in proxy.asked} == {f"CONNECT api.example:{ground.server.port} HTTP/1.1"}
    assert len(proxy.asked) == 3


@promise(
    "Commands go through the proxy that environment or kubeconfig name, as with kubectl.",
    of="mpirt-rsh",
    no_cluster="the test cluster has no proxy before it",
)
def test_a_command_goes_through_the_proxy_of_the_kubeconfig(ground: Ground, proxy: Proxy) -> None:
    change_cluster(ground, proxy_url=proxy.with_user("me:s3cret"))

    ended = ground.run("w-0", "exit 3", env={"HTTPS_PROXY": "http://127.0.0.1:1", "MPIRT_LOG": "debug"})

    # Where the machine is slow, the command is not over before its pod is watched on another connection.
    assert (ended.code, len(proxy.asked)) == (3, ground.server.connections)
    assert f"at 127.0.0.1:{ground.server.port} through the proxy {proxy.url}, by context" in ended.lines[0]
    assert "s3cret" not in ended.errors


def test_this_machine_is_reached_without_the_proxy_of_the_environment(ground: Ground, proxy: Proxy) -> None:
    ended = ground.run("w-0", "true", env={"HTTPS_PROXY": proxy.url})

    assert (ended.code, ended.errors, proxy.asked) == (0, "", [])


@promise(
    "Errors of a connection through a proxy name the proxy.",
    of="mpirt-rsh",
    no_cluster="the test cluster has no proxy before it",
)
def test_the_line_of_a_connection_that_fails_names_the_proxy(ground: Ground, proxy: Proxy) -> None:
    change_cluster(ground, proxy_url=proxy.with_user("me:s3cret"))
    url = proxy.url
    proxy.stop()

    ended = ground.run("-o", "ConnectionAttempts=1", "w-0", "true")

    assert ended.code == ExitCode.UNREACHABLE
    assert f"127.0.0.1:{ground.server.port} through the proxy {url}: Connection refused" in ended.line


def test_a_proxy_that_can_not_connect_now_is_asked_again(ground: Ground, proxy: Proxy) -> None:
    change_cluster(ground, proxy_url=proxy.url)
    proxy.answers = [b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"]

    ended = ground.run("w-0", "exit 3")

    assert (ended.code, len(proxy.asked)) == (3, ground.server.connections + 1)


def test_a_proxy_that_wants_a_password_is_not_asked_again(ground: Ground, proxy: Proxy) -> None:
    change_cluster(ground, proxy_url=proxy.url)
    proxy.answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"

    ended = ground.run("w-0", "true")

    assert (ended.code, len(proxy.asked)) == (ExitCode.CONFIG, 1)
    assert f"the proxy {proxy.url} asks for a user and password" in ended.line
