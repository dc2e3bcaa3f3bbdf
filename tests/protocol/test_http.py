"""One request: what is sent, what is waited for, which connection it takes and who it says we are."""

from __future__ import annotations

import socket

import pytest

from mpirt.errors import PeerError, Refused
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request import asks
from mpirt.kubeapi.request.answers import ConnectionLost, NotFound, Rejected, TimedOut, Unauthorized
from mpirt.kubeapi.request.api import Api
from mpirt.kubeapi.request.dial import Dialer
from mpirt.kubeapi.request.stream import Address
from tests.apiserver.door import Deaf, DoorFault, PlainText, Slam
from tests.apiserver.faults import (
    Answer,
    ByteByByte,
    Chunked,
    Endless,
    Fault,
    Hangup,
    Raw,
    Silence,
    Status,
    Then,
    head,
)
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.clients import Connect, ReadPod, Rotating, Said, endpoint_of, reading, soon

# Long enough for a loopback connection with TLS on a busy machine, and short enough to wait for.
SHORT = 0.4


class TestOneRequest:
    def test_a_pod_is_read(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        apiserver.world.put(pod("w-0", uid="the-uid"))

        found = read_pod()

        assert found == apiserver.world.get("ml", "w-0")

    def test_the_request_says_who_asks_whom_and_no_more(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        apiserver.world.put(pod("w-0"))

        read_pod()

        (request,) = apiserver.asked("get")
        assert request.headers == {
            "host": f"127.0.0.1:{apiserver.port}",
            "user-agent": "mpirt",
            "authorization": f"Bearer {apiserver.token}",
        }

    def test_names_are_quoted_into_the_path(self, apiserver: ApiServer, api: Api) -> None:
        with pytest.raises(NotFound):
            api.get_pod("a/../b", "x?watch=1#", soon())

        (request,) = apiserver.asked("get")
        assert request.target == "/api/v1/namespaces/a%2F..%2Fb/pods/x%3Fwatch%3D1%23"

    def test_the_servers_base_path_comes_first(self, apiserver: ApiServer, connect: Connect) -> None:
        apiserver.base_path = "/k8s/clusters/c-1"
        apiserver.world.put(pod("w-0"))

        reading(connect(endpoint_of(apiserver)))()

        (request,) = apiserver.asked("get")
        assert request.path == "/k8s/clusters/c-1/api/v1/namespaces/ml/pods/w-0"

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(Chunked((b'{"kind":', b'"Pod"', b"}")), id="chunks"),
            pytest.param(Raw(head(200, ()) + b'{"kind":"Pod"}'), id="until the end of the connection"),
            pytest.param(ByteByByte(Answer(200, b'{"kind":"Pod"}')), id="byte by byte"),
            pytest.param(
                Raw(head(100, ()) + head(103, ()) + head(200, (("Content-Length", "14"),)) + b'{"kind":"Pod"}'),
                id="after interim answers",
            ),
            pytest.param(
                Raw(b'HTTP/1.0 200 OK\r\nContent-Length: 14\r\n\r\n{"kind":"Pod"}'), id="from an old proxy"
            ),
        ],
    )
    def test_a_body_may_come_in_any_form(self, apiserver: ApiServer, read_pod: ReadPod, fault: Fault) -> None:
        apiserver.on("get", fault)

        assert read_pod() == {"kind": "Pod"}


class TestAWrite:
    ASK = asks.get_pod("ml", "w-0")

    def test_says_what_it_brings(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.on("get", Answer(201, b'{"kind":"Pod"}'))

        made = api.write("POST", self.ASK, b'{"kind": "Pod"}', soon())

        (request,) = apiserver.asked("get")
        assert made == {"kind": "Pod"}
        assert request.method == "POST"
        assert request.headers["content-type"] == "application/json"
        assert request.headers["content-length"] == "15"

    def test_that_is_not_answered_is_not_sent_again(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.world.put(pod("w-0"))
        api.get_pod("ml", "w-0", soon())
        apiserver.on("get", Hangup())

        with pytest.raises(ConnectionLost):
            api.write("PUT", self.ASK, b"{}", soon())

        assert [request.method for request in apiserver.asked("get")] == ["GET", "PUT"]

    def test_that_is_refused_says_why(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.on("get", Status(409, "Conflict", "the object has been modified"))

        with pytest.raises(Rejected, match="the object has been modified") as caught:
            api.write("PUT", self.ASK, b"{}", soon())

        assert caught.value.failure.status == 409


class TestTheDoor:
    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            pytest.param(Slam(), Said(ConnectionLost), id="closed"),
            pytest.param(Slam(reset=True), Said(ConnectionLost), id="reset"),
            pytest.param(
                PlainText(), Said(PeerError, part="does not speak TLS; is the port right?"), id="plain HTTP"
            ),
        ],
    )
    def test_a_connection_that_does_not_become_tls(
        self, apiserver: ApiServer, read_pod: ReadPod, fault: DoorFault, said: Said
    ) -> None:
        apiserver.at_the_door(fault)

        error = said.by(read_pod)

        assert f"the API server at 127.0.0.1:{apiserver.port}" in str(error)

    def test_an_address_that_this_machine_has_no_family_for_is_passed_over(self, apiserver: ApiServer) -> None:
        apiserver.world.put(pod("w-0"))
        # As IPv6 is where there is none: no family has this number.
        addresses = [Address(99, ("::1", 6443, 0, 0)), Address(socket.AF_INET, ("127.0.0.1", apiserver.port))]
        client = Api(Dialer(endpoint_of(apiserver, host="localhost"), look_up=lambda _host, _port: addresses))

        found = reading(client)()
        client.close()

        assert found["kind"] == "Pod"

    def test_no_address_that_this_machine_has_a_family_for(self, apiserver: ApiServer) -> None:
        lacking = Address(99, ("::1", 6443, 0, 0))
        client = Api(Dialer(endpoint_of(apiserver, host="localhost"), look_up=lambda _host, _port: [lacking]))

        with pytest.raises(ConnectionLost, match="Address family not supported by protocol"):
            reading(client)()

    def test_no_server_listens(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        apiserver.stop()

        with pytest.raises(ConnectionLost, match=r"the API server at 127\.0\.0\.1:\d+: Connection refused"):
            read_pod()


class TestTheDeadline:
    def test_covers_a_server_that_does_not_answer_tls(self, apiserver: ApiServer, api: Api) -> None:
        apiserver.at_the_door(Deaf())

        with pytest.raises(TimedOut, match=r"did not answer within 0\.4 s \(connecting\)"):
            api.get_pod("ml", "w-0", Deadline(SHORT))

    @pytest.mark.parametrize(
        ("fault", "doing"),
        [
            pytest.param(Silence(), "waiting for its answer", id="half-open"),
            pytest.param(Raw(b"HTTP/1.1 200 O", Then.HANG), "waiting for its answer", id="half a status line"),
            (Raw(head(200, (("Content-Length", "9"),)) + b"{", Then.HANG), "reading its answer"),
            pytest.param(Raw(head(200, ()) + b"{}", Then.HANG), "reading its answer", id="a body without end"),
            pytest.param(Chunked((b"{}",), Then.HANG), "reading its answer", id="no last chunk"),
        ],
    )
    def test_covers_every_part_of_an_answer(
        self, apiserver: ApiServer, api: Api, fault: Fault, doing: str
    ) -> None:
        apiserver.on("get", fault)

        with pytest.raises(TimedOut, match=rf"did not answer within .* s \({doing}\)"):
            api.get_pod("ml", "w-0", Deadline(SHORT))

    @pytest.mark.parametrize(
        "start",
        [
            pytest.param(head(200, (("Content-Length", str(2**20)),)), id="body"),
            pytest.param(b"HTTP/1.1 200 OK\r\nX: ", id="header"),
            pytest.param(head(200, (("Transfer-Encoding", "chunked"),)) + b"100000\r\n", id="chunk"),
        ],
    )
    def test_covers_an_answer_that_never_stops_coming(self, apiserver: ApiServer, api: Api, start: bytes) -> None:
        apiserver.on("get", Endless(start))

        with pytest.raises((TimedOut, PeerError)):
            api.get_pod("ml", "w-0", Deadline(SHORT))

    def test_that_has_passed_lets_nothing_be_sent(self, apiserver: ApiServer, api: Api) -> None:
        with pytest.raises(TimedOut):
            api.get_pod("ml", "w-0", Deadline(0.0))

        assert apiserver.asked("get") == []


class TestTheConnection:
    def test_is_kept_for_the_next_request(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        apiserver.world.put(pod("w-0"))

        for _ in range(3):
            read_pod()

        assert apiserver.connections == 1

    def test_is_kept_after_a_no(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        for _ in range(2):
            with pytest.raises(NotFound):
                read_pod()

        assert apiserver.connections == 1

    def test_that_was_closed_meanwhile_is_replaced(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        apiserver.on("get", Raw(Answer(200, b"{}").head() + b"{}", Then.CLOSE))
        apiserver.world.put(pod("w-0"))
        read_pod()

        read_pod()

        assert apiserver.connections == 2

    def test_that_breaks_under_the_next_request_is_replaced(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        apiserver.world.put(pod("w-0"))
        read_pod()
        apiserver.on("get", Hangup())

        assert read_pod() == apiserver.world.get("ml", "w-0")
        assert (apiserver.connections, len(apiserver.asked("get"))) == (2, 3)

    def test_that_breaks_in_the_middle_of_the_next_answer_is_news(
        self, apiserver: ApiServer, read_pod: ReadPod
    ) -> None:
        apiserver.world.put(pod("w-0"))
        read_pod()
        apiserver.on("get", Raw(b"HTTP/1.1 2"))

        Said(ConnectionLost, part="in the middle of its answer").by(read_pod)

    def test_is_not_kept_when_the_server_says_so(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        apiserver.always("get", Answer(200, b"{}", (("Connection", "close"),)))

        for _ in range(2):
            read_pod()

        assert apiserver.connections == 2

    def test_is_not_kept_with_bytes_that_answer_no_request(self, apiserver: ApiServer, read_pod: ReadPod) -> None:
        answer = Answer(200, b"{}")
        apiserver.always("get", Raw(answer.head() + b"{}" + b"HTTP/1.1 200 OK\r\n", Then.STAY))

        for _ in range(2):
            read_pod()

        assert apiserver.connections == 2


class TestWhoWeAre:
    def test_a_stale_token_is_read_again_once(self, apiserver: ApiServer, connect: Connect) -> None:
        source = Rotating("stale", apiserver.token)
        apiserver.world.put(pod("w-0"))

        reading(connect(endpoint_of(apiserver, source)))()

        assert [request.headers["authorization"] for request in apiserver.asked("get")] == [
            "Bearer stale",
            f"Bearer {apiserver.token}",
        ]

    def test_two_stale_tokens_are_enough(self, apiserver: ApiServer, connect: Connect) -> None:
        source = Rotating("stale", "staler", apiserver.token)

        with pytest.raises(Unauthorized) as caught:
            reading(connect(endpoint_of(apiserver, source)))()

        assert len(apiserver.asked("get")) == 2
        assert "stale" not in str(caught.value)

    def test_the_same_token_is_not_tried_twice(self, apiserver: ApiServer, connect: Connect) -> None:
        with pytest.raises(Unauthorized):
            reading(connect(endpoint_of(apiserver, Rotating("wrong"))))()

        assert len(apiserver.asked("get")) == 1

    def test_without_a_token_no_authorization_is_sent(self, apiserver: ApiServer, connect: Connect) -> None:
        source = Rotating("")

        with pytest.raises(Refused):
            reading(connect(endpoint_of(apiserver, source)))()

        assert "authorization" not in apiserver.asked("get")[0].headers
