"""All pods of a common watch, for who asks: when they are given, and when the API server has to be asked."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Sequence
from typing import Any

from mpirt.rsh.watches.jobpods import NotKnown
from mpirt.rsh.watches.podhub import PodHub
from tests.apiserver.faults import Chunked, Then
from tests.apiserver.server import ApiServer
from tests.protocol.podhub.crowds import SELECTOR, Begin, Crowd, commons

ALL = ["w-0", "w-1", "w-2", "w-3"]


class Asker:
    """Who asks a hub, in the loop of a crowd."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.answers: list[Sequence[Any] | NotKnown] = []

    def ask(self, *selectors: str) -> list[str] | str:
        """The names of the pods, or why they aren't given."""
        count = len(self.answers)
        self.crowd.hub.ask(selectors or (SELECTOR,), dict, self.answers.append)
        self.crowd.until(lambda: len(self.answers) > count)
        found = self.answers[-1]
        return str(found) if isinstance(found, NotKnown) else [each["metadata"]["name"] for each in found]

    def until(self, wanted: list[str] | str) -> None:
        """Ask until that is the answer."""
        self.crowd.until(lambda: self.ask() == wanted)


def watching(hub: PodHub) -> bool:
    return hub.state == "watching"


def begun(server: ApiServer, begin: Begin) -> tuple[Crowd, Asker]:
    """A crowd whose hub has answered once."""
    crowd = begin("w-0", selector=SELECTOR)
    crowd.settles(server)
    asker = Asker(crowd)
    asker.until(ALL)
    return crowd, asker


class TestAHub:
    def test_keeps_no_pods_until_the_first_question(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0")
        asker = Asker(crowd)

        assert asker.ask() == "the pods are being listed for the first time"
        asker.until(ALL)
        assert len(commons(apiserver, "list")) == 2

    def test_may_know_what_is_in_scope(self, apiserver: ApiServer, begin: Begin) -> None:
        crowd = begin("w-0", selector=SELECTOR)
        assert not crowd.hub.may_know([SELECTOR])
        crowd.settles(apiserver)

        assert crowd.hub.may_know([SELECTOR])
        assert crowd.hub.may_know([f"app=x,{SELECTOR}"])
        assert not crowd.hub.may_know(["app=x"])

    def test_of_a_namespace_finds_pods_by_their_labels(self, apiserver: ApiServer, begin: Begin) -> None:
        crowd = begin("x")
        crowd.settles(apiserver)
        asker = Asker(crowd)

        asker.until(ALL)

        assert asker.ask(SELECTOR) == ALL
        assert asker.ask("mpi-job-name=a", SELECTOR) == ALL
        assert asker.ask("mpi-job-name=a") == []

    def test_reads_a_change_that_has_come_before_it_answers(self, apiserver: ApiServer, begin: Begin) -> None:
        crowd, asker = begun(apiserver, begin)
        apiserver.world.delete("w-2")
        poll = select.poll()
        poll.register(crowd.hub.waits()[0], select.POLLIN)
        assert poll.poll(20_000)

        assert asker.ask() == ["w-0", "w-1", "w-3"]

    def test_forgets_the_pods_when_its_last_follower_leaves(self, apiserver: ApiServer, begin: Begin) -> None:
        crowd, asker = begun(apiserver, begin)
        crowd.hub.ask((SELECTOR,), dict, asker.answers.append)
        crowd.close()
        assert str(asker.answers[-1]) == "no command runs in these pods any more"
        apiserver.world.delete("w-3")
        crowd.follow("w-1")
        crowd.until(lambda: watching(crowd.hub))

        asker.until("the pods are being listed for the first time")
        asker.until(["w-0", "w-1", "w-2"])


class TestAWatch:
    def test_is_given_up_soon_when_its_peer_has_vanished(self, apiserver: ApiServer, begin: Begin) -> None:
        crowd, _ = begun(apiserver, begin)
        with socket.socket(fileno=os.dup(crowd.hub.waits()[0])) as same:
            options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            found = [same.getsockopt(socket.IPPROTO_TCP, option) for option in options]

            assert same.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert found == [5, 2, 3]

    def test_that_has_ended_is_not_answered_from(self, apiserver: ApiServer, begin: Begin) -> None:
        crowd, asker = begun(apiserver, begin)
        apiserver.always("watch", Chunked((), Then.HANG))
        apiserver.on("list", Chunked((), Then.HANG))
        apiserver.world.compact()
        crowd.until(lambda: commons(apiserver, "list")[2:])

        assert asker.ask() == "the watch on the pods is not open at the moment"

    def test_with_bookmarks_is_believed(self, apiserver: ApiServer, begin: Begin) -> None:
        crowd, asker = begun(apiserver, begin)
        crowd.skip(80.0)
        apiserver.world.bookmark()
        poll = select.poll()
        poll.register(crowd.hub.waits()[0], select.POLLIN)
        assert poll.poll(20_000)
        assert asker.ask() == ALL
        crowd.skip(80.0)

        assert asker.ask() == ALL
        assert len(commons(apiserver, "list")) == 2
