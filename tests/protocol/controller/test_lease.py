"""Who of two acts, and how a controller ends."""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mpirt.controller.cluster.election import Terms
from mpirt.controller.cluster.lease import Elector
from mpirt.controller.cluster.link import Answer, Link, Request, connect
from mpirt.controller.monitoring.logs import LineLog, logfmt
from mpirt.errors import ExitCode
from testbed.kube.wait import until
from tests.apiserver.objects import ObjectServer
from tests.apiserver.storage import Body, Place
from tests.protocol.controller.process import JOB, WITHIN, Start, job, wait_until_made

LEASE = Place("leases", "ml", "mpirt-controller")
# What requests are counted with.
OK, NO_ANSWER = 200, 0
# A lease that runs out soon, and one that a holder keeps on however busy a machine.
SHORT = ("--lease-namespace=ml", "--lease-duration=3", "--lease-renew-deadline=2", "--lease-retry=0.5")
LONG = ("--lease-namespace=ml", "--lease-duration=60", "--lease-renew-deadline=50", "--lease-retry=1")


def holder(server: ObjectServer) -> str:
    found: str = server.storage.get(LEASE)["spec"]["holderIdentity"]
    return found


def test_the_second_waits_and_takes_over_when_the_first_is_killed(server: ObjectServer, start: Start) -> None:
    first = start(*SHORT)
    first.wait_until_it_says("leading")
    second = start(*LONG)
    second.wait_until_it_says("started")
    first.kill()
    server.storage.create(JOB, job())

    wait_until_made(server)

    assert "create" not in first.said()
    assert "acting" in second.said()


def test_a_leader_that_is_told_to_end_releases_the_lease(server: ObjectServer, start: Start) -> None:
    # What is asked of the server may take as long as the pause between two attempts.
    controller = start(*LONG, "--lease-retry=20")
    controller.wait_until_it_says("acting")

    controller.ask_to_end()

    assert controller.code() == 0
    assert holder(server) == ""


def test_a_leader_that_loses_the_lease_ends(server: ObjectServer, start: Start) -> None:
    controller = start(*LONG)
    controller.wait_until_it_says("leading")

    server.storage.change(LEASE, take)

    assert controller.code() == ExitCode.UNREACHABLE
    assert holder(server) == "another"


def test_a_leader_that_can_not_renew_the_lease_ends(server: ObjectServer, start: Start) -> None:
    controller = start(*SHORT)
    controller.wait_until_it_says("leading")

    server.away = True

    assert controller.code() == ExitCode.UNREACHABLE
    assert "lease lost" in controller.said()


def test_a_replica_that_waits_for_the_lease_ends_when_told(server: ObjectServer, start: Start) -> None:
    start(*LONG).wait_until_it_says("leading")
    second = start(*LONG)
    second.wait_until_it_says("started")

    second.ask_to_end()

    assert second.code() == 0
    assert holder(server) != ""


def test_a_waiting_replica_knows_since_when_the_api_server_is_back_and_reports_each_outage(
    server: ObjectServer, tmp_path: Path
) -> None:
    server.storage.create(LEASE, {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 600}})
    said, codes = io.StringIO(), list[int]()
    link = connect(str(server.kubeconfig(tmp_path)), count=lambda _verb, _resource, code: codes.append(code))
    log = LineLog(said, logfmt, lambda: datetime.now(UTC))
    waiting = Elector(link, LEASE.namespace, LEASE.name, "it", log, terms=Terms(600, 60.0, 0.5))
    made = waiting.heard_since
    waiting.start(gained=never, lost=never)
    until(lambda: OK in codes, within=WITHIN, what="the first answer")
    told = said.getvalue()
    server.away = True
    asked = len(codes)
    # One question may be on its way and still be answered. Behind one that failed by now, none is.
    until(lambda: NO_ANSWER in codes[asked:], within=WITHIN, what="a question without an answer")
    until(lambda: tells_more(said, told), within=WITHIN, what="word of the outage")
    begun = waiting.heard_since
    # On a busy machine there may have been an outage before this one.
    assert begun == made or NO_ANSWER in codes[:asked]

    back = datetime.now(UTC)
    server.away = False

    until(lambda: waiting.heard_since != begun, within=WITHIN, what="an answer")
    assert back < waiting.heard_since < datetime.now(UTC)
    told = said.getvalue()
    server.away = True
    until(lambda: tells_more(said, told), within=WITHIN, what="word of the next outage")
    waiting.stop()
    link.close()


class Odd(Link):
    """A way to an API server that answers whatever a test says."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = deque(answers)
        """The last of them counts for ever."""

    def ask(self, request: Request) -> Answer:
        del request
        answer = self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def lease(holder: str, version: str = "7", duration: object = 600) -> Answer:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": duration}
    return Answer(OK, {"kind": "Lease", "metadata": {"name": "it", "resourceVersion": version}, "spec": spec})


PAGE = Answer(OK, {"message": "<html>Sign in</html>"})
MISTAKE = ValueError("odd")


@contextmanager
def electing(link: Odd, said: io.StringIO) -> Iterator[tuple[Elector, threading.Event, threading.Event]]:
    """An elector that asks so, and whether it has gained the lease and lost it."""
    log = LineLog(said, logfmt, lambda: datetime.now(UTC))
    elector = Elector(link, "ml", "it", "me", log, terms=Terms(3, 1.0, 0.2))
    gained, lost = threading.Event(), threading.Event()
    elector.start(gained=gained.set, lost=lost.set)
    try:
        yield elector, gained, lost
    finally:
        elector.stop()


class TestAnAnswerThatNobodyExpects:
    def test_counts_as_not_renewed_and_is_reported(self) -> None:
        said = io.StringIO()

        with electing(Odd(lease("me"), lease("me"), MISTAKE), said) as (elector, gained, lost):
            assert gained.wait(WITHIN)
            assert lost.wait(WITHIN)
            assert not elector.leads()

        assert "internal error; please report it" in said.getvalue()
        assert said.getvalue().count("internal error") == 1
        assert "lease lost" in said.getvalue()

    def test_keeps_no_replica_from_leading_later(self) -> None:
        with electing(Odd(MISTAKE, MISTAKE, lease("me")), io.StringIO()) as (_, gained, _lost):
            assert gained.wait(WITHIN)

    @pytest.mark.parametrize(
        "answers",
        [
            pytest.param((PAGE,), id="a page of a proxy to a read"),
            pytest.param((lease(""), PAGE), id="a page of a proxy to a write"),
            pytest.param((lease(""), lease("another")), id="another holder than the one that was written"),
        ],
    )
    def test_is_no_lease(self, answers: tuple[Answer, ...]) -> None:
        said = io.StringIO()

        with electing(Odd(*answers), said) as (elector, gained, _):
            until(lambda: "is not the Lease" in said.getvalue(), within=WITHIN, what="word of the answer")
            assert not gained.is_set()
            assert not elector.leads()


def test_an_elector_whose_thread_has_ended_is_not_alive() -> None:
    with electing(Odd(lease("me"), lease("me"), MISTAKE), io.StringIO()) as (elector, gained, lost):
        assert gained.wait(WITHIN)
        assert elector.is_alive()

        assert lost.wait(WITHIN)

        until(lambda: not elector.is_alive(), within=WITHIN, what="the end of its thread")


def tells_more(said: io.StringIO, before: str) -> bool:
    """Whether it says once more that it could not renew."""
    return said.getvalue().count("lease not renewed") > before.count("lease not renewed")


def never() -> None:
    """What does not happen."""
    raise AssertionError


def take(lease: Body) -> None:
    """Let another replica have it."""
    lease["spec"]["holderIdentity"] = "another"
