"""The upgrade to the WebSocket of an exec: the sub-protocol, the refusals, and what must not pass for a yes."""

from __future__ import annotations

import select

import pytest

from mpirt.errors import PeerError
from mpirt.kubeapi.access.steps import Deadline
from mpirt.kubeapi.request.answers import (
    ConnectionLost,
    Forbidden,
    NotFound,
    ProtocolRefused,
    Redirected,
    Rejected,
    ServerFailed,
    TimedOut,
)
from mpirt.kubeapi.request.asks import exec_in_pod
from mpirt.kubeapi.request.execs import ExecApi, Upgraded
from tests.apiserver.channel import SUCCESS, V4, V5, Channel
from tests.apiserver.door import Deaf
from tests.apiserver.faults import Answer, Bare, Fault, Hangup, Raw, Redirect, Silence, Status, Text, Then, head
from tests.apiserver.frames import message
from tests.apiserver.peer import Peer
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.clients import Said, soon

ASK = exec_in_pod("ml", "w-0", container="worker", command=["/bin/sh", "-c", 'IFS= read -r l && eval "$l"'])
MAY_NOT = (
    'may not exec into pod "w-0" in namespace "ml": '
    'the Role in namespace "ml" must hold get and create on pods/exec (the API server says: '
)


@pytest.fixture(autouse=True)
def _worker(apiserver: ApiServer) -> None:
    apiserver.world.put(pod("w-0"))


def everything(upgraded: Upgraded) -> bytes:
    """What arrives until the connection ends."""
    stream, data = upgraded.stream, upgraded.leftover
    while (piece := stream.read()) != b"":
        data += piece or b""
        if piece is None:
            assert select.select([stream.to_poll[0]], [], [], 20.0)[0]
    stream.close()
    return data


class TestTheHandshake:
    def test_asks_for_the_bootstrap_in_the_named_container(self, apiserver: ApiServer, api: ExecApi) -> None:
        api.open_exec(ASK, [V4], soon()).stream.close()

        (request,) = apiserver.asked("exec")
        assert request.method == "GET"
        assert request.target == (
            "/api/v1/namespaces/ml/pods/w-0/exec?container=worker&stdin=true&stdout=true&stderr=true"
            "&command=%2Fbin%2Fsh&command=-c&command=IFS%3D%20read%20-r%20l%20%26%26%20eval%20%22%24l%22"
        )
        assert request.headers["sec-websocket-protocol"] == V4
        assert request.headers.keys().isdisjoint({"sec-websocket-extensions", "accept"})

    @pytest.mark.parametrize("protocol", [V4, V5])
    def test_settles_on_the_sub_protocol(self, apiserver: ApiServer, api: ExecApi, protocol: str) -> None:
        apiserver.on("exec", Peer(lambda channel: channel.status(SUCCESS)))

        upgraded = api.open_exec(ASK, [protocol], soon())

        assert upgraded.protocol == protocol
        assert everything(upgraded) == message(1) + message(3, b'{"metadata":{},"status":"Success"}')

    def test_leaves_a_connection_of_its_own(self, apiserver: ApiServer, api: ExecApi) -> None:
        upgraded = api.open_exec(ASK, [V4], soon())

        api.get_pod("ml", "w-0", soon())

        assert apiserver.connections == 2
        upgraded.stream.close()

    def test_keeps_the_frames_that_come_with_the_answer(self, apiserver: ApiServer, api: ExecApi) -> None:
        def talks_at_once(channel: Channel) -> None:
            channel.stdout(b"x" * 40_000)

        apiserver.on("exec", Peer(talks_at_once))

        assert everything(api.open_exec(ASK, [V4], soon())) == message(1) + message(1, b"x" * 40_000)

    def test_runs_a_real_command(self, api: ExecApi) -> None:
        ask = exec_in_pod("ml", "w-0", container="worker", command=["/bin/sh", "-c", "echo out; exit 3"])

        data = everything(api.open_exec(ask, [V4], soon()))

        assert data.startswith(message(1) + message(1, b"out\n"))
        assert b'"reason":"ExitCode","message":"3"' in data


class TestRefusals:
    def test_an_unknown_sub_protocol(self, apiserver: ApiServer, api: ExecApi) -> None:
        apiserver.protocols = (V4,)

        with pytest.raises(
            ProtocolRefused, match=r"v5\.channel\.k8s\.io is not accepted \(403 without a reason\)"
        ):
            api.open_exec(ASK, [V5], soon())

    def test_an_unknown_sub_protocol_on_a_connection_that_stays_open(
        self, apiserver: ApiServer, api: ExecApi
    ) -> None:
        apiserver.on("exec", Bare(403, Then.HANG))

        with pytest.raises(ProtocolRefused):
            api.open_exec(ASK, [V5], soon())

    @pytest.mark.parametrize(
        ("lacks", "says"),
        [
            pytest.param(
                "get",
                'pods "w-0" is forbidden: User "system:serviceaccount:ml:launcher" cannot get resource '
                '"pods/exec" in API group "" in the namespace "ml")',
                id="get",
            ),
            pytest.param("create", 'pods "w-0" is forbidden:)', id="create"),
        ],
    )
    def test_a_missing_verb_names_both(self, apiserver: ApiServer, api: ExecApi, lacks: str, says: str) -> None:
        apiserver.rules -= {(lacks, "pods/exec")}

        Said(Forbidden, MAY_NOT + says).by(lambda: api.open_exec(ASK, [V4], soon()))

    @pytest.mark.parametrize(
        ("fault", "error", "part"),
        [
            pytest.param(
                Status(400, "BadRequest", "pod w-0 does not have a host assigned"),
                Rejected,
                "(400): pod w-0 does not have a host assigned",
                id="400 unscheduled",
            ),
            pytest.param(Text(404, "pod does not exist"), NotFound, "pod does not exist", id="404 of the kubelet"),
            (Text(500, 'container not found ("worker")'), ServerFailed, "container not found"),
            pytest.param(Redirect("https://10.0.0.9:10250/exec"), Redirected, "never followed", id="a redirect"),
            pytest.param(Answer(200, b"{}"), PeerError, "does a proxy drop Upgrade headers?", id="200"),
            pytest.param(Hangup(), ConnectionLost, "without an answer", id="hangs up"),
        ],
    )
    def test_each_has_its_error(
        self, apiserver: ApiServer, api: ExecApi, fault: Fault, error: type[Exception], part: str
    ) -> None:
        apiserver.on("exec", fault)

        with pytest.raises(error) as caught:
            api.open_exec(ASK, [V4], soon())

        assert part in str(caught.value)

    def test_no_such_pod(self, api: ExecApi) -> None:
        with pytest.raises(NotFound, match='pods "w-9" not found'):
            api.open_exec(exec_in_pod("ml", "w-9", container="worker", command=["true"]), [V4], soon())

    @pytest.mark.parametrize("fault", [pytest.param(Silence(), id="exec"), pytest.param(None, id="TLS")])
    def test_silence_ends_with_the_deadline(self, apiserver: ApiServer, api: ExecApi, fault: Fault | None) -> None:
        if fault is None:
            apiserver.at_the_door(Deaf())
        else:
            apiserver.on("exec", fault)

        with pytest.raises(TimedOut):
            api.open_exec(ASK, [V4], Deadline(0.4))


def answer(**changes: str) -> bytes:
    """A 101 with the given headers instead of the right ones; the key can't be right."""
    fields = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        "Sec-WebSocket-Protocol": V4,
    }
    fields.update({name.replace("_", "-"): value for name, value in changes.items()})
    return head(101, list(fields.items()))


class TestWrongYeses:
    @pytest.mark.parametrize(
        ("data", "text"),
        [
            pytest.param(answer(), "is not the answer to our key", id="another key's answer"),
        ],
    )
    def test_an_answer_to_another_handshake(
        self, apiserver: ApiServer, api: ExecApi, data: bytes, text: str
    ) -> None:
        apiserver.on("exec", Raw(data, Then.HANG))

        Said(PeerError, part=text).by(lambda: api.open_exec(ASK, [V4], soon()))
