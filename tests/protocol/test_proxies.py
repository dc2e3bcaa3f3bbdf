"""Through a proxy: the tunnel, TLS from end to end in it, and what each refusal of the proxy means."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

import pytest

from mpirt.errors import ConfigError, PeerError, Unreachable
from mpirt.kubeapi.access.credentials import PemText, Secret
from mpirt.kubeapi.access.endpoint import Endpoint
from mpirt.kubeapi.access.proxies import read_proxy
from mpirt.kubeapi.access.steps import Deadline, Pending
from mpirt.kubeapi.request.answers import ConnectionLost, TimedOut, Untrusted
from mpirt.kubeapi.request.asks import exec_in_pod
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.request.execs import ExecApi
from mpirt.kubeapi.request.stream import Address
from tests.apiserver.certificates import HOST, Authority
from tests.apiserver.channel import V4
from tests.apiserver.pods import pod
from tests.apiserver.proxy import Proxy
from tests.apiserver.server import ApiServer
from tests.promises import promise
from tests.protocol.clients import Connect, Rotating, Said, reading, soon
from tests.protocol.execs import Exec

ASK = exec_in_pod("ml", "w-0", container="worker", command=["/bin/sh", "-c", "echo out"])
USER = "me:p%40ss-word"


@pytest.fixture(params=["http", "https"])
def proxy(apiserver: ApiServer, authority: Authority, request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """A proxy before the server; the test runs once with each kind."""
    apiserver.world.put(pod("w-0"))
    made = Proxy((HOST, apiserver.port), authority=authority if request.param == "https" else None)
    yield made
    made.stop()


def through(proxy: Proxy, server: ApiServer, *, url: str = "", host: str = HOST) -> Endpoint:
    return Endpoint(
        host=host,
        port=server.port,
        ca=PemText(Secret(server.authority.ca), "the test's CA"),
        source=Rotating(server.token),
        origin="the test's kubeconfig",
        namespace="ml",
        server_name=HOST if host != HOST else "",
        proxy=read_proxy(url or proxy.url, "HTTPS_PROXY"),
    )


class TestATunnel:
    def test_leads_to_the_server(self, apiserver: ApiServer, proxy: Proxy, connect: Connect) -> None:
        found = reading(connect(through(proxy, apiserver)))()

        ((line, headers),) = proxy.asked
        assert found == apiserver.world.get("ml", "w-0")
        assert line == f"CONNECT 127.0.0.1:{apiserver.port} HTTP/1.1"
        assert headers == {"host": f"127.0.0.1:{apiserver.port}", "user-agent": "mpirt"}

    def test_is_asked_for_by_name_which_only_the_proxy_resolves(self, apiserver: ApiServer, proxy: Proxy) -> None:
        def nobody(host: str, _port: int) -> Sequence[Address]:
            raise OSError(0, f"{host} was looked up")

        client = ExecApi(Dialer(through(proxy, apiserver, host="api.example"), look_up=nobody))
        reading(client)()
        client.close()

        assert proxy.asked[0][0] == f"CONNECT api.example:{apiserver.port} HTTP/1.1"

    def test_is_opened_for_a_user_with_a_password(
        self, apiserver: ApiServer, proxy: Proxy, connect: Connect
    ) -> None:
        reading(connect(through(proxy, apiserver, url=proxy.with_user(USER))))()

        pair = base64.b64encode(b"me:p@ss-word").decode()
        assert proxy.asked[0][1]["proxy-authorization"] == f"Basic {pair}"
        assert "proxy-authorization" not in apiserver.asked("get")[0].headers

    def test_is_kept_for_the_next_request(self, apiserver: ApiServer, proxy: Proxy, connect: Connect) -> None:
        client = connect(through(proxy, apiserver))

        for _ in range(3):
            reading(client)()

        assert len(proxy.asked) == 1

    def test_carries_much_both_ways(self, apiserver: ApiServer, proxy: Proxy, connect: Connect) -> None:
        size = 500_000
        opened = Exec(connect(through(proxy, apiserver)), f"head -c {size}")
        for start in range(0, size, 10_000):
            opened.send(0, b"%09d\n" % start * 1000)

        said, _ = opened.everything()
        opened.close()

        assert said[1] == b"".join(b"%09d\n" % start * 1000 for start in range(0, size, 10_000))


class TestTls:
    @promise(
        "TLS with the API server is verified from end to end through a proxy.",
        of="safety",
        no_cluster="the test cluster has no proxy before it",
    )
    def test_is_verified_from_end_to_end(self, apiserver: ApiServer, proxy: Proxy, connect: Connect) -> None:
        apiserver.identity = apiserver.authority.wrong_ca
        client = connect(through(proxy, apiserver))

        error = Said(Untrusted, part="is not the API server that the test's CA vouches for").by(reading(client))

        assert f"through the proxy {proxy.url} is not" in str(error)
        assert apiserver.requests == []

    def test_of_the_proxy_is_verified_too(
        self, apiserver: ApiServer, authority: Authority, connect: Connect
    ) -> None:
        proxy = Proxy((HOST, apiserver.port), authority=authority)
        proxy.identity = authority.wrong_name
        client = connect(through(proxy, apiserver, url=proxy.with_user(USER)))

        Said(Untrusted, part=f"the proxy {proxy.url} is not trusted: IP address mismatch").by(reading(client))
        proxy.stop()

        assert proxy.asked == []


def refusal(line: bytes, body: bytes = b"", type: bytes = b"text/plain") -> bytes:  # noqa: A002  as the header
    return b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (line, type, len(body), body)


class TestRefusals:
    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            pytest.param(
                refusal(b"407 Proxy Authentication Required"),
                Said(
                    ConfigError, part="(407 Proxy Authentication Required); put them into the URL in HTTPS_PROXY"
                ),
                id="407",
            ),
            pytest.param(
                refusal(b"403 Forbidden", b"not on\nthe list"),
                Said(ConfigError, part="(403 Forbidden): not on the list; it is named by HTTPS_PROXY"),
                id="403",
            ),
            pytest.param(
                refusal(b"502 Bad Gateway", b"<html>", b"text/html"),
                Said(Unreachable, part="(502 Bad Gateway)"),
                id="502",
            ),
            pytest.param(
                b"\x15\x03\x01\x00\x02\x02\x50", Said(PeerError, part="the answer is not HTTP"), id="no HTTP"
            ),
            pytest.param(
                b"HTTP/1.1 2", Said(ConnectionLost, part="closed the connection without an answer"), id="half"
            ),
            pytest.param(
                b"HTTP/1.1 200 OK\r\n\r\nwelcome",
                Said(PeerError, part="sent bytes before the API server was asked for any"),
                id="a greeting",
            ),
        ],
    )
    def test_each_has_its_error(
        self, apiserver: ApiServer, proxy: Proxy, connect: Connect, answer: bytes, said: Said
    ) -> None:
        proxy.answer = answer
        client = connect(through(proxy, apiserver))

        error = said.by(reading(client))

        assert f"the proxy {proxy.url}" in str(error)
        assert apiserver.connections == 0

    def test_of_a_password_does_not_repeat_it(self, apiserver: ApiServer, proxy: Proxy, connect: Connect) -> None:
        proxy.answer = refusal(b"407 Proxy Authentication Required")
        client = connect(through(proxy, apiserver, url=proxy.with_user(USER)))

        error = Said(ConfigError, part="does not accept the user and password in HTTPS_PROXY").by(reading(client))

        assert "ss-word" not in str(error) + repr(client.dialer.endpoint)

    def test_to_answer_ends_with_the_deadline(self, apiserver: ApiServer, proxy: Proxy, connect: Connect) -> None:
        proxy.answer = b""
        client = connect(through(proxy, apiserver))

        Said(TimedOut, part=f"through the proxy {proxy.url} did not answer within 0.4 s (connecting)").by(
            lambda: client.get_pod("ml", "w-0", Deadline(0.4))
        )

    def test_to_answer_never_makes_a_step_wait(self, apiserver: ApiServer, proxy: Proxy, connect: Connect) -> None:
        proxy.answer = b""
        dial = Pending(connect(through(proxy, apiserver)).upgrade(ASK, [V4], soon()))

        steps = [dial.advance() for _ in range(200)]
        dial.close()

        assert steps == [False] * 200

    def test_to_be_connected_to(self, apiserver: ApiServer, proxy: Proxy, connect: Connect) -> None:
        url = proxy.url
        client = connect(through(proxy, apiserver))
        proxy.stop()

        Said(ConnectionLost, part=f"through the proxy {url}: Connection refused").by(reading(client))


class TestAName:
    def test_of_a_proxy_that_does_not_resolve_names_the_proxy(self, apiserver: ApiServer, proxy: Proxy) -> None:
        def nobody(_host: str, _port: int) -> Sequence[Address]:
            raise OSError(0, "Name or service not known")

        endpoint = through(proxy, apiserver, url="http://proxy.example:3128")
        client = ExecApi(Dialer(endpoint, look_up=nobody))

        with pytest.raises(Unreachable, match=r"the proxy's name proxy\.example can't be resolved: Name or serv"):
            reading(client)()
