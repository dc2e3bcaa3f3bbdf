"""Who of two acts, and how a controller ends."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from mpirt.controller.cluster.election import Terms
from mpirt.controller.cluster.lease import Elector
from mpirt.controller.cluster.link import connect
from mpirt.controller.monitoring.logs import LineLog, logfmt
from mpirt.errors import ExitCode
from tests.apiserver.objects import ObjectServer
from tests.apiserver.storage import Body, Place
from tests.kube.wait import until
from tests.protocol.controller.process import JOB, WITHIN, Controller, job, wait_until_made

Start = Callable[..., Controller]

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


def test_who_is_told_to_end_gives_the_lease_back(server: ObjectServer, start: Start) -> None:
    # What is asked of the server may take as long as the pause between two attempts.
    controller = start(*LONG, "--lease-retry=20")
    controller.wait_until_it_says("acting")

    controller.ask_to_end()

    assert controller.code() == 0
    assert holder(server) == ""


def test_who_loses_the_lease_ends(server: ObjectServer, start: Start) -> None:
    controller = start(*LONG)
    controller.wait_until_it_says("leading")

    server.storage.change(LEASE, take)

    assert controller.code() == ExitCode.UNREACHABLE
    assert holder(server) == "another"


def test_who_can_not_renew_the_lease_ends(server: ObjectServer, start: Start) -> None:
    controller = start(*SHORT)
    controller.wait_until_it_says("leading")

    server.away = True

    assert controller.code() == ExitCode.UNREACHABLE
    assert "lease lost" in controller.said()


def test_who_waits_for_the_lease_ends_when_told(server: ObjectServer, start: Start) -> None:
    start(*LONG).wait_until_it_says("leading")
    second = start(*LONG)
    second.wait_until_it_says("started")

    second.ask_to_end()

    assert second.code() == 0
    assert holder(server) != ""


def test_who_waits_knows_since_when_the_api_server_is_back_and_tells_of_each_outage(
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


def tells_more(said: io.StringIO, before: str) -> bool:
    """Whether it says once more that it could not renew."""
    return said.getvalue().count("lease not renewed") > before.count("lease not renewed")


def never() -> None:
    """What does not happen."""
    raise AssertionError


def take(lease: Body) -> None:
    """Let somebody else have it."""
    lease["spec"]["holderIdentity"] = "another"
