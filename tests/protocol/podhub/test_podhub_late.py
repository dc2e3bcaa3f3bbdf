"""
Who follows a pod later than others: what is known may be older than its command.

A watch whose connection is dead looks like one on which nothing happens. The command may have been started in
another pod than the one that the watch knows.
"""

from __future__ import annotations

import pytest

from mpirt.rsh.session import events
from tests.apiserver.faults import Chunked, Then
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.podhub.crowds import JOB, Begin, Crowd, alone, commons, deleting, running, told

ANOTHER = "Running another"
# Beyond the time after which a watch is up to date, and after which one is given up that does not end.
SETTLED, GIVEN_UP = 1.0, 260.0


def replace(server: ApiServer, name: str) -> None:
    """Delete the pod, and create another one of the name."""
    server.world.put(deleting(pod(name, labels=JOB)))
    server.world.delete(name)
    server.world.put(pod(name, labels=JOB, uid="another"))


def firsts(crowd: Crowd, name: str) -> list[str]:
    """The pods with which the follower was told to begin anew."""
    return [each.pod.uid for each in crowd.heard[name] if isinstance(each, events.PodSeen) and each.is_first]


class TestOnADeadWatch:
    @pytest.fixture
    def crowd(self, apiserver: ApiServer, settled: Begin) -> Crowd:
        """w-0 is followed from the beginning, and w-1 since it was replaced."""
        apiserver.on("watch", Chunked((), Then.HANG))
        crowd = settled("w-0")
        crowd.skip(SETTLED)
        replace(apiserver, "w-1")
        crowd.follow("w-1")
        crowd.for_a_while(0.05)
        return crowd

    def test_begins_anew_with_the_next_list(self, crowd: Crowd) -> None:
        crowd.followers["w-0"].look(anew=True)
        crowd.hears("w-1", running("w-1"), ANOTHER)

        assert firsts(crowd, "w-1") == ["another"]
        assert firsts(crowd, "w-0") == ["uid-of-w-0"]

    def test_begins_anew_when_the_watch_is_given_up_and_does_not_hear_what_was_missed(self, crowd: Crowd) -> None:
        crowd.skip(GIVEN_UP)
        crowd.hears("w-1", running("w-1"), "silent", ANOTHER)

        assert firsts(crowd, "w-1") == ["another"]

    def test_hears_what_happens_afterwards(self, apiserver: ApiServer, crowd: Crowd) -> None:
        crowd.followers["w-0"].look(anew=True)
        crowd.hears("w-1", running("w-1"), ANOTHER)
        apiserver.world.put(deleting(pod("w-1", labels=JOB, uid="another")))
        apiserver.world.delete("w-1")
        crowd.hears("w-1", "gone")

        assert len(commons(apiserver, "list")) == 2

    def test_hears_of_a_pod_that_is_gone(self, apiserver: ApiServer, crowd: Crowd) -> None:
        apiserver.world.delete("w-1")
        crowd.followers["w-0"].look(anew=True)

        crowd.hears("w-1", running("w-1"), "gone")


class TestOnAWatchThatLives:
    def test_hears_of_the_next_change_at_once(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0")
        crowd.skip(SETTLED)
        crowd.follow("w-1")
        crowd.hears("w-1", running("w-1"))
        replace(apiserver, "w-1")
        crowd.hears("w-1", "gone", ANOTHER)

        assert (firsts(crowd, "w-1"), len(commons(apiserver, "list")), alone(apiserver, "list")) == ([], 1, [])

    def test_hears_what_was_missed_if_anything_came_before(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0")
        crowd.skip(SETTLED)
        crowd.follow("w-1")
        crowd.hears("w-1", running("w-1"))
        apiserver.world.put(pod("w-0", labels=JOB, phase="Failed"))
        crowd.hears("w-0", "Failed uid-of-w-0")
        replace(apiserver, "w-1")
        crowd.skip(GIVEN_UP)
        crowd.hears("w-1", "gone", ANOTHER)

        assert (firsts(crowd, "w-1"), len(commons(apiserver, "list"))) == ([], 1)

    def test_a_thousand_cost_no_request(self, apiserver: ApiServer, settled: Begin) -> None:
        names = [f"n-{number}" for number in range(1000)]
        apiserver.world.put(*(pod(name, labels=JOB) for name in names))
        crowd = settled("w-0")
        crowd.skip(SETTLED)
        asked = len(apiserver.requests)

        crowd.follow(*names)
        crowd.until(lambda: all(crowd.heard[name] for name in names))
        apiserver.world.put(pod("w-0", labels=JOB, phase="Failed"))
        crowd.hears("w-0", "Failed uid-of-w-0")

        assert len(apiserver.requests) == asked


class TestOnAWatchThatHasJustBegun:
    def test_hears_of_no_change_that_may_be_older(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0")
        # The time of the watch's beginning is in the future, however slow this machine is.
        crowd.skip(-30.0)
        crowd.follow("w-1")
        crowd.hears("w-1", running("w-1"))
        replace(apiserver, "w-1")
        apiserver.world.put(pod("w-0", labels=JOB, phase="Failed"))
        crowd.hears("w-0", "Failed uid-of-w-0")
        assert told(crowd.heard["w-1"]) == [running("w-1")]

        crowd.skip(30.0)
        crowd.hears("w-1", running("w-1"), ANOTHER)

        assert firsts(crowd, "w-1") == ["another"]


class TestAPodThatIsKnownToEnd:
    def test_is_read_anew(self, apiserver: ApiServer, settled: Begin) -> None:
        apiserver.world.put(deleting(pod("w-1", labels=JOB)))
        apiserver.on("watch", Chunked((), Then.HANG))
        crowd = settled("w-0")
        apiserver.world.delete("w-1")
        apiserver.world.put(pod("w-1", labels=JOB, uid="another"))
        crowd.follow("w-1")
        crowd.hears("w-1", ANOTHER)

        assert told(crowd.heard["w-1"]) == [ANOTHER]
