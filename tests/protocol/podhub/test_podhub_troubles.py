"""What goes wrong with the watch of many pods, looks because of it, and Roles that do not allow it."""

from __future__ import annotations

import pytest

from mpirt.rsh.session import events
from tests.apiserver.faults import Chunked, Hangup, Status, Then
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer, Honest
from tests.protocol.podhub.crowds import JOB, SELECTOR, Begin, alone, commons, running, told


class TestTroubles:
    def test_of_version_are_no_news(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0")
        apiserver.world.compact()
        apiserver.world.put(pod("w-0", labels=JOB, phase="Failed"))

        crowd.hears("w-0", "Failed uid-of-w-0")

        assert "silent" not in told(crowd.heard["w-0"])

    def test_of_a_token_begin_the_list_anew(self, apiserver: ApiServer, settled: Begin) -> None:
        apiserver.world.put(*(pod(f"n-{number}", labels=JOB) for number in range(300)))
        apiserver.on("list", Honest(), Status(410, "Expired", "the token is too old"))
        crowd = settled("n-299")

        assert told(crowd.heard["n-299"]) == [running("n-299")]
        assert len(commons(apiserver, "list")) == 2

    @pytest.mark.parametrize("fault", [Hangup(Then.RESET), Status(503), Chunked((b"{",), Then.RESET)])
    def test_of_the_server_are_reported_to_all_and_nothing_is_missed(
        self, apiserver: ApiServer, begin: Begin, fault: Hangup | Status | Chunked
    ) -> None:
        apiserver.on("watch", fault)
        crowd = begin("w-0", "w-1", selector=SELECTOR)

        crowd.hears("w-1", running("w-1"), "silent")
        crowd.until(lambda: isinstance(crowd.heard["w-1"][-1], events.ApiAnswers))
        apiserver.world.put(pod("w-0", labels=JOB, phase="Failed"))

        crowd.hears("w-0", running("w-0"), "silent", "Failed uid-of-w-0")

    def test_are_reported_to_a_session_that_begins_meanwhile(self, apiserver: ApiServer, begin: Begin) -> None:
        apiserver.always("list", Status(503, retry_after=60))
        crowd = begin("w-0", selector=SELECTOR)
        crowd.hears("w-0", "silent")

        crowd.follow("w-1")
        crowd.loop.turn()

        assert told(crowd.heard["w-1"])[0] == "silent"

    def test_of_a_silent_server_end_with_a_look(self, apiserver: ApiServer, settled: Begin) -> None:
        apiserver.on("watch", Chunked((), Then.HANG))
        crowd = settled("w-0")
        apiserver.world.put(pod("w-0", labels=JOB, phase="Failed"))

        crowd.followers["w-0"].look(anew=True)

        crowd.hears("w-0", running("w-0"), "Failed uid-of-w-0")
        assert apiserver.connections == 2


class TestLooks:
    def test_of_many_at_once_are_one_list(self, apiserver: ApiServer, settled: Begin) -> None:
        names = [f"w-{number}" for number in range(4)]
        crowd = settled(*names)

        for name in names:
            crowd.followers[name].look(anew=True)
        crowd.hears("w-3", running("w-3"), running("w-3"))
        for name in names:
            crowd.followers[name].look(anew=True)
        crowd.hears("w-3", *[running("w-3")] * 3)

        assert len(commons(apiserver, "list")) == 3

    def test_that_are_no_reason_for_a_list_cause_none(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0")

        crowd.followers["w-0"].look(anew=False)
        crowd.for_a_while()

        assert len(commons(apiserver, "list")) == 1

    def test_of_few_in_a_large_set_are_at_single_pods(self, apiserver: ApiServer, settled: Begin) -> None:
        apiserver.world.put(*(pod(f"n-{number}", labels=JOB) for number in range(600)))
        crowd = settled("w-0", "w-1")

        crowd.followers["w-0"].look(anew=True)
        crowd.hears("w-0", running("w-0"), running("w-0"))
        apiserver.world.put(pod("w-0", labels=JOB, phase="Failed"))
        crowd.hears("w-0", running("w-0"), running("w-0"), "Failed uid-of-w-0")
        crowd.for_a_while()

        assert told(crowd.heard["w-0"]).count("Failed uid-of-w-0") == 1
        assert (alone(apiserver, "list"), alone(apiserver, "watch")) == (["w-0"], [])
        assert len(commons(apiserver, "list")) == 1


class TestALesserRole:
    @pytest.mark.parametrize("missing", [{"watch"}, {"list"}, {"list", "watch"}], ids=sorted)
    def test_has_each_pod_read_for_itself(self, apiserver: ApiServer, begin: Begin, missing: set[str]) -> None:
        apiserver.rules -= {(verb, "pods") for verb in missing}
        crowd = begin("w-0", "w-1", "missing")

        crowd.hears("w-0", running("w-0"), running("w-0"))
        apiserver.world.delete("w-1")
        crowd.hears("w-1", "gone")
        crowd.until(lambda: "gone" in told(crowd.heard["missing"]))

        assert "silent" not in told(crowd.heard["w-0"])

    def test_that_allows_nothing_is_reported(self, apiserver: ApiServer, begin: Begin) -> None:
        apiserver.rules = frozenset()
        crowd = begin("w-0", "w-1")

        crowd.hears("w-0", "hidden")
        crowd.hears("w-1", "hidden")

    def test_has_the_first_questions_spread(self, apiserver: ApiServer, begin: Begin) -> None:
        apiserver.rules -= {("list", "pods"), ("watch", "pods")}
        names = [f"w-{number}" for number in range(30)]
        crowd = begin(*names, selector=SELECTOR)

        crowd.until(lambda: apiserver.asked("get"))
        crowd.for_a_while(0.2)

        assert len(apiserver.asked("get")) < 20

    def test_that_names_pods_has_each_watched(self, apiserver: ApiServer, begin: Begin) -> None:
        apiserver.on("list", Status(403, "Forbidden", "not all"))
        crowd = begin("w-0", "w-1", selector=SELECTOR)

        crowd.until(lambda: len(alone(apiserver, "watch")) == 2)
        apiserver.world.put(pod("w-1", labels=JOB, phase="Failed"))

        crowd.hears("w-1", running("w-1"), "Failed uid-of-w-1")
        crowd.followers["w-0"].look(anew=True)
        crowd.hears("w-0", running("w-0"), running("w-0"))
        assert len(commons(apiserver, "list")) == 1

    def test_may_come_late(self, apiserver: ApiServer, begin: Begin) -> None:
        rules, apiserver.rules = apiserver.rules, frozenset({("get", "pods")})
        crowd = begin("w-0", "w-1", "missing", selector=SELECTOR)
        crowd.until(lambda: all(told(heard) for heard in crowd.heard.values()))
        apiserver.rules = rules

        crowd.skip(60.0)
        crowd.until(lambda: len(commons(apiserver, "watch")) == 1)
        crowd.for_a_while()
        before = len(apiserver.asked("get"))
        crowd.skip(10.0)
        apiserver.world.put(pod("w-1", labels=JOB, phase="Failed"))
        crowd.hears("w-1", "Failed uid-of-w-1")
        crowd.for_a_while()

        assert told(crowd.heard["w-1"]).count("Failed uid-of-w-1") == 1
        assert len(apiserver.asked("get")) <= before + 1
