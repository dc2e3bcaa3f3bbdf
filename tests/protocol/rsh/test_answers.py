"""
Every answer that an API server, a kubelet or something between may give to an exec, and what becomes of it.

The table of knowledge on the exec protocol, row by row: an answer that stays is an end with a code and one line;
an answer that goes away is no end at all where trying again may help.
"""

from __future__ import annotations

import json

import pytest

from tests.apiserver.channel import STDOUT
from tests.apiserver.connection import Exchange
from tests.apiserver.door import Deaf, PlainText, Slam
from tests.apiserver.faults import (
    Answer,
    Bare,
    ByteByByte,
    Fault,
    Hangup,
    Raw,
    Redirect,
    Silence,
    Status,
    Text,
    Then,
)
from tests.apiserver.peer import Peer
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.apiserver.shell import Cut, End, Shell
from tests.protocol.rsh.agent import Ground
from tests.protocol.rsh.cases import CameOf, Case, Tell, always, lasting, once
from tests.protocol.rsh.peers import ends_with

BUSY = "the API server is overloaded or going away; try again"
NO_SUCH = 'pods "w-0" not found'
NOT_IN_POD = "pod does not exist"
UNSCHEDULED = "pod w-0 does not have a host assigned"
COMPLETED = "cannot exec into a container in a completed pod; current phase is Succeeded"
FORBIDDEN = 'pods "w-0" is forbidden: cannot get resource "pods/exec"'
NEEDED = 'the Role in namespace "ml" must hold get and create on pods/exec'
NO_CONTAINER = 'container not found ("worker")'
CREATED = "failed to exec in container: container is in CONTAINER_CREATED state"
DIALING = "error dialing backend: dial tcp 10.0.0.9:10250: connect: connection refused"
NO_AGENT = "error dialing backend: No agent available"
NO_SHELL = 'OCI runtime exec failed: exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown'
HTML = Answer(400, b"<html><h1>400 Bad Request</h1></html>", type="text/html")


def rules(*held: tuple[str, str]) -> Tell:
    return lambda server: setattr(server, "rules", frozenset(held))


def at_the_door(server: ApiServer) -> None:
    server.at_the_door(*[Slam()] * 99)


def no_pod(server: ApiServer) -> None:
    server.world.delete("w-0")


def stopped(server: ApiServer) -> None:
    server.stop()


# fmt: off
STAYS = [
    # who we are, and what we may
    Case("401", always(Status(401, "Unauthorized", "Unauthorized")), 242,
         ('exec into pod "w-0" in namespace "ml"', "does not accept the credentials of", "have they expired?")),
    Case("401 without a body", always(Bare(401)), 242, ('pod "w-0"', "have they expired?")),
    lasting("403 without get", rules(), 242, ('pod "w-0"', NEEDED, "cannot get resource")),
    lasting("403 without create", rules(("get", "pods/exec")), 242, ('pod "w-0"', NEEDED)),
    lasting("403 in plain text", always(Text(403, "the proxy does not like you")), 242,
            ("the Role", "the proxy does not like you", "gave up after")),
    # what we speak
    Case("403 without a body", always(Bare(403)), 245, ('pod "w-0"', "(403 without a reason)"), execs=2),
    Case("400 without a body", always(Bare(400)), 245, ('pod "w-0"', "(400)"), execs=2),
    Case("400 as a page", always(HTML), 245, ('pod "w-0"', "(400)"), execs=2),
    Case("400 unable to upgrade", always(Text(400, "unable to upgrade: unsupported")), 245,
         ('pod "w-0"', "unable to upgrade"), execs=2),
    Case("406", always(Status(406, "NotAcceptable", "no")), 245, ('pod "w-0"', "(406)")),
    Case("409", always(Status(409, "Conflict", "the pod is changing")), 245, ('pod "w-0"', "the pod is changing")),
    Case("431", always(Bare(431)), 245, ('pod "w-0"', "(431)")),
    # the pod
    lasting("404", no_pod, 243, ('pod "w-0"', NO_SUCH, "gave up after")),
    lasting("404 of a kubelet", always(Text(404, NOT_IN_POD)), 243, ('pod "w-0"', NOT_IN_POD, "gave up after")),
    lasting("400 not scheduled", always(Status(400, "BadRequest", UNSCHEDULED)), 243, (UNSCHEDULED,)),
    Case("400 completed", always(Status(400, "BadRequest", COMPLETED)), 243, (COMPLETED,)),
    Case("400 no such container", always(Status(400, "BadRequest", "container x is not valid for pod w-0")), 241,
         ("container x is not valid for pod w-0",
          "is what --container or MPIRT_CONTAINER names one of its containers?")),
    lasting("500 no container yet", always(Text(500, f"unable to upgrade connection: {NO_CONTAINER}")), 243,
            ('pod "w-0"', NO_CONTAINER)),
    lasting("500 created", always(Text(500, CREATED)), 243, ('pod "w-0"', "CONTAINER_CREATED")),
    Case("500 without a shell", always(Text(500, NO_SHELL)), 252,
         ('pod "w-0"', "no such file", "mpirt needs a /bin/sh in the worker's image")),
    # the way
    lasting("500", always(Status(500, "InternalError", "boom")), 244, ('pod "w-0"', "boom", "gave up after")),
    lasting("500 without a body", always(Bare(500)), 244, ('pod "w-0"', "(500)")),
    lasting("500 dialing", always(Status(500, "InternalError", DIALING)), 244, ('pod "w-0"', DIALING)),
    lasting("500 no agent", always(Status(500, "InternalError", NO_AGENT)), 244, ('pod "w-0"', NO_AGENT)),
    lasting("429", always(Status(429, "TooManyRequests", "slow down")), 244, ('pod "w-0"', "slow down")),
    Case("429 for a minute", always(Status(429, "TooManyRequests", "slow down", retry_after=60)), 244,
         ('pod "w-0"', "slow down", "gave up after 1 attempt in")),
    lasting("502", always(Bare(502)), 244, ('pod "w-0"', BUSY)),
    lasting("503", always(Status(503, "ServiceUnavailable", "going away")), 244, ('pod "w-0"', "going away")),
    lasting("504", always(Answer(504, b"<html></html>", type="text/html")), 244, ('pod "w-0"', BUSY)),
    # something else
    Case("a redirect", always(Redirect("https://127.0.0.1:1/")), 245,
         ('pod "w-0"', "answered with a redirect, which is never followed")),
    Case("200", always(Answer(200, b"{}")), 245, ("no upgrade to WebSocket (200)", "a proxy")),
    Case("204", always(Answer(204)), 245, ("(204)",)),
    Case("101 of no WebSocket", always(Raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n")), 245,
         ("not a WebSocket",)),
    Case("no HTTP at all", always(Raw(b"220 mail.example ESMTP\r\n")), 245, ("not HTTP",)),
    lasting("half an answer", always(Raw(b"HTTP/1.1 500 Inter")), 244, ("in the middle of its answer",)),
    lasting("half an answer and silence", always(Raw(b"HTTP/1.1 500 Inter", Then.HANG)), 244,
            ("did not answer within",)),
    lasting("closed", always(Hangup()), 244, ("closed the connection without an answer",)),
    lasting("reset", always(Hangup(Then.RESET)), 244, ("127.0.0.1",)),
    lasting("half-open", always(Silence()), 244, ("did not answer within 4 s",)),
    lasting("nobody there", stopped, 244, ("cannot connect", "Connection refused"), execs=0),
    lasting("nobody at home", lambda server: server.at_the_door(*[Deaf()] * 99), 244,
            ("did not answer",), execs=0),
    lasting("a slammed door", at_the_door, 244, ("127.0.0.1",), execs=0),
    Case("no TLS", lambda server: server.at_the_door(PlainText()), 245,
         ("does not speak TLS; is the port right?",), execs=0),
    # the wrong one
    Case("another authority", lambda server: setattr(server, "identity", server.authority.wrong_ca), 241,
         ("is not the API server that", "vouches for"), execs=0),
    Case("another name", lambda server: setattr(server, "identity", server.authority.wrong_name), 241,
         ("is not the API server that", "127.0.0.1"), execs=0),
    Case("an expired certificate", lambda server: setattr(server, "identity", server.authority.expired), 241,
         ("is not the API server that", "expired"), execs=0),
]

GOES = [
    Case("404 once", once(Status(404, "NotFound", NO_SUCH)), 0),
    Case("404 of a kubelet once", once(Text(404, NOT_IN_POD)), 0),
    Case("400 not scheduled once", once(Status(400, "BadRequest", UNSCHEDULED)), 0),
    Case("500 no container once", once(Text(500, NO_CONTAINER)), 0),
    Case("500 created once", once(Text(500, CREATED)), 0),
    Case("500 dialing once", once(Status(500, "InternalError", DIALING)), 0),
    Case("500 once", once(Bare(500)), 0),
    Case("429 once", once(Status(429, "TooManyRequests", "slow down", retry_after=1)), 0),
    Case("502 once", once(Bare(502)), 0),
    Case("503 once", once(Status(503, "ServiceUnavailable", "going away")), 0),
    Case("504 once", once(Bare(504)), 0),
    Case("closed once", once(Hangup()), 0),
    Case("reset once", once(Hangup(Then.RESET)), 0),
    Case("half an answer once", once(Raw(b"HTTP/1.1 503 Serv")), 0),
    Case("unauthorized by a node once", once(Bare(403)), 0),
    Case("403 once, before the Role names a new worker", once(Status(403, "Forbidden", FORBIDDEN)), 0),
    Case("byte by byte once", once(ByteByByte(Answer(503, b"no"))), 0),
]
ONE_AFTER_THE_OTHER = Case(
    "one after the other",
    lambda server: server.on(
        "exec", Status(503), Text(500, CREATED), Bare(403), Hangup(Then.RESET), Peer(ends_with(End.EOF)),
        Shell(cut=Cut(b"KEEPER", End.RESET, STDOUT)),
    ),
    0, execs=7, slow=True,
)
# fmt: on


@pytest.mark.parametrize("case", STAYS, ids=str)
def test_an_answer_that_stays_is_an_end_with_a_code_and_one_line(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert [part for part in case.says if part not in outcome.ended.line] == []
    assert (outcome.ended.code, outcome.ended.output, outcome.runs) == (case.code, b"", 0)
    assert case.execs in (None, len(outcome.execs))
    # In four seconds: whoever asks more often than five times a second does not wait.
    assert len(outcome.execs) < 20


@pytest.mark.parametrize("case", GOES, ids=str)
def test_an_answer_that_goes_away_is_no_end(case: Case, came_of: CameOf) -> None:
    outcome = came_of(case)

    assert (outcome.ended.code, outcome.ended.output, outcome.ended.errors) == (0, b"out", "")
    assert (len(outcome.execs), outcome.runs) == (2, 1)


class TestAnswersOneAfterTheOther:
    @pytest.mark.parametrize("case", [ONE_AFTER_THE_OTHER], ids=str)
    def test_answers_are_all_lived_through(self, case: Case, came_of: CameOf) -> None:
        outcome = came_of(case)

        assert (outcome.ended.code, outcome.ended.output, outcome.ended.errors) == (0, b"out", "")
        assert (len(outcome.execs), outcome.runs) == (7, 1)

    def test_answers_may_end_with_a_refusal_that_passes(self, ground: Ground) -> None:
        ground.server.on("exec", Status(503), Status(403, "Forbidden", FORBIDDEN))

        ended = ground.run("w-0", "printf out")

        assert (ended.code, ended.output, ended.errors) == (0, b"out", "")
        assert len(ground.server.asked("exec")) == 3

    def test_answers_may_be_limited_in_number(self, ground: Ground) -> None:
        ground.server.always("exec", Status(503))

        ended = ground.run("-o", "ConnectionAttempts=2", "w-0", "true")

        assert "gave up after 2 attempts" in ended.line
        assert (ended.code, len(ground.server.asked("exec"))) == (244, 2)

    def test_answers_may_be_limited_in_time(self, ground: Ground) -> None:
        ground.server.always("exec", Silence())

        ended = ground.run("-o", "ConnectTimeout=1", "w-0", "true")

        assert "did not answer within 1 s" in ended.line
        assert ended.code == 244


class Restless:
    """A list in which the pod's container is another one each time."""

    def __init__(self) -> None:
        self._lists = 0

    def play(self, exchange: Exchange) -> None:
        self._lists += 1
        found = pod("w-0", container_id=f"containerd://{self._lists}")
        page = {"metadata": {"resourceVersion": str(100 + self._lists)}, "items": [found]}
        Answer(200, json.dumps(page).encode()).play(exchange)


class TestAPodThatIsAnotherAtEveryLook:
    def test_a_pod_that_is_another_at_every_look_is_not_asked_for_without_a_pause(self, ground: Ground) -> None:
        ground.server.always("exec", Text(500, NO_CONTAINER))
        ground.server.always("list", Restless())

        # Six attempts take 4 s at least; without a pause, far less than one.
        ended = ground.run("-o", "ConnectTimeout=60", "-o", "ConnectionAttempts=6", "w-0", "true")

        assert "gave up after 6 attempts in " in ended.line
        assert int(ended.line.rpartition(" attempts in ")[2].split()[0]) >= 2


class TestSeveralContainers:
    ASKS = Status(400, "BadRequest", "a container name must be specified for pod w-0, choose one of: [a b]")

    def test_the_first_is_entered_and_it_is_said(self, ground: Ground) -> None:
        ground.server.world.put(pod("w-0", containers=("a", "b")))
        ground.server.on("exec", self.ASKS)

        ended = ground.run("w-0", "printf out")

        assert (
            ended.line
            == "pod w-0: of the containers a, b the first is used; --container or MPIRT_CONTAINER chooses another"
        )
        assert (ended.code, ended.output) == (0, b"out")
        assert [request.query.get("container") for request in ground.server.asked("exec")] == [None, "a"]

    def test_the_user_may_name_one(self, ground: Ground) -> None:
        ended = ground.run("w-0", "printf out", env={"MPIRT_CONTAINER": "b"})

        assert (ended.code, ended.output, ended.errors) == (0, b"out", "")
        assert [request.query["container"] for request in ground.server.asked("exec")] == ["b"]

    def test_an_agent_that_may_only_get_the_pod_looks_at_it_so(self, ground: Ground) -> None:
        ground.server.rules = frozenset({("get", "pods/exec"), ("create", "pods/exec"), ("get", "pods")})
        ground.server.on("exec", self.ASKS)

        ended = ground.run("w-0", "printf out")

        assert (ended.code, ended.output, ended.errors) == (0, b"out", "")
        assert ground.server.asked("exec")[-1].query["container"] == "worker"
        # It tries to list first. Once the command has run for a second, its pod is looked at, too.
        asked = [name for name, _ in ground.server.requests if name != "list"]
        assert asked == ["exec", "get", "exec"] + ["get"] * (len(asked) - 3)

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(Status(503, "ServiceUnavailable", "going away"), id="503"),
            pytest.param(Status(429, "TooManyRequests", "slow down", retry_after=1), id="429"),
            pytest.param(Hangup(Then.RESET), id="a reset"),
        ],
    )
    def test_a_look_that_fails_for_a_moment_is_tried_again(self, ground: Ground, fault: Fault) -> None:
        ground.server.on("exec", self.ASKS)
        ground.server.on("list", fault)

        ended = ground.run("w-0", "printf out")

        assert (ended.code, ended.output, ended.errors) == (0, b"out", "")
        assert ground.server.asked("exec")[-1].query["container"] == "worker"

    def test_an_agent_that_may_not_look_says_what_to_set(self, ground: Ground) -> None:
        ground.server.rules = frozenset({("get", "pods/exec"), ("create", "pods/exec")})
        ground.server.on("exec", self.ASKS)

        ended = ground.run("w-0", "true")

        assert "which container of pod w-0?" in ended.line
        assert "must hold get on pods" in ended.line
        assert ended.line.endswith("name one by --container or MPIRT_CONTAINER")
        assert ended.code == 241
