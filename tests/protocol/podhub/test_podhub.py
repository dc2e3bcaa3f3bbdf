"""One watch for the pods of many sessions, on the wire: what each of them hears, and what the server is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mpirt.rsh.session import events
from mpirt.rsh.watches.awaited import Waiter
from mpirt.rsh.watches.loop import FOR_EVER
from tests.apiserver.faults import Chunked, Status, Then
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.podhub.crowds import JOB, SELECTOR, Begin, alone, commons, deleting, running, told


class TestOneWatch:
    def test_is_enough_for_a_thousand(self, apiserver: ApiServer, begin: Begin) -> None:
        names = [f"n-{number}" for number in range(1000)]
        apiserver.world.put(*(pod(name, labels=JOB) for name in names))
        crowd = begin(*names)

        crowd.settles(apiserver)

        assert {name: told(crowd.heard[name])[-1] for name in names} == {name: running(name) for name in names}
        assert (commons(apiserver, "list"), commons(apiserver, "watch")) == (
            [SELECTOR],
            [SELECTOR],
        )
        assert alone(apiserver, "list") == ["n-0"]
        assert len(apiserver.asked("list")) == 6

    def test_of_a_selector_that_was_given_needs_no_first_pod(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0")

        assert told(crowd.heard["w-0"]) == [running("w-0")]
        assert (alone(apiserver, "list"), apiserver.connections) == ([], 1)

    def test_tells_each_of_its_own_pod_only(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0", "w-1")

        apiserver.world.put(pod("w-1", labels=JOB, phase="Failed"))
        crowd.hears("w-1", "Failed uid-of-w-1")

        assert told(crowd.heard["w-0"]) == [running("w-0")]

    def test_ends_with_its_last_follower_and_begins_with_the_next(
        self, apiserver: ApiServer, settled: Begin
    ) -> None:
        crowd = settled("w-0", "w-1")
        crowd.close()

        assert crowd.hub.waits() == (-1, 0, FOR_EVER)
        crowd.follow("w-2")
        crowd.hears("w-2", running("w-2"))
        assert apiserver.connections == 2

    def test_goes_on_without_a_follower_that_left_while_it_heard(self, apiserver: ApiServer, begin: Begin) -> None:
        crowd = begin("w-0", selector=SELECTOR)
        heard: list[events.Event] = []

        def leave(news: Sequence[events.Event]) -> None:
            heard.extend(news)
            for follower in found:
                follower.drop()

        found = [crowd.hub.follow("w-1", leave), crowd.hub.follow("w-1", leave)]
        crowd.settles(apiserver)

        assert told(heard) == [running("w-1")]


class TestTheScope:
    @pytest.mark.parametrize(
        ("names", "scope"),
        [
            pytest.param(["missing", "w-0", "w-1"], SELECTOR, id="that of the first pod that is there"),
            pytest.param(["x", "w-0"], "", id="the namespace if the first pod has no job"),
            pytest.param(
                [f"missing-{number}" for number in range(12)], "", id="the namespace if many are missing"
            ),
        ],
    )
    def test_is(self, apiserver: ApiServer, begin: Begin, names: list[str], scope: str) -> None:
        crowd = begin(*names)
        crowd.settles(apiserver)

        assert commons(apiserver, "watch") == [scope]
        last = {name: "gone" if "missing" in name else running(name) for name in names}
        assert {name: told(crowd.heard[name])[-1] for name in names} == last

    def test_is_that_of_the_next_pod_if_the_first_follower_leaves(
        self, apiserver: ApiServer, begin: Begin
    ) -> None:
        crowd = begin("x", "w-0", "w-1")
        crowd.loop.turn()
        crowd.followers.pop("x").drop()
        del crowd.heard["x"]

        crowd.settles(apiserver)

        assert commons(apiserver, "watch") == [SELECTOR]

    def test_is_that_of_a_later_pod_if_the_first_is_missing(self, apiserver: ApiServer, begin: Begin) -> None:
        crowd = begin("missing")
        crowd.hears("missing", "gone")

        crowd.follow("w-0")
        crowd.settles(apiserver)

        assert commons(apiserver, "watch") == [SELECTOR]

    def test_that_is_not_known_yet_keeps_no_look_waiting(self, apiserver: ApiServer, begin: Begin) -> None:
        apiserver.on("list", Status(503, retry_after=60))
        crowd = begin("w-0", "w-1")
        crowd.hears("w-1", "silent")

        crowd.followers["w-1"].look(anew=True)

        crowd.hears("w-1", "silent", running("w-1"))


class TestALateFollower:
    def test_hears_at_once_what_is_known(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0")
        asked = len(apiserver.requests)

        crowd.follow("w-1")
        crowd.loop.turn()

        assert told(crowd.heard["w-1"]) == [running("w-1")]
        assert len(apiserver.requests) == asked

    def test_that_looks_at_once_hears_what_is_read_then(self, apiserver: ApiServer, settled: Begin) -> None:
        apiserver.on("watch", Chunked((), Then.HANG))
        crowd = settled("w-0")
        apiserver.world.put(pod("w-1", labels=JOB, phase="Failed"))

        crowd.follow("w-1")
        crowd.followers["w-1"].look(anew=True)
        crowd.until(lambda: crowd.heard["w-1"])

        assert told(crowd.heard["w-1"]) == ["Failed uid-of-w-1"]


class TestAPodOutside:
    def test_has_a_watch_of_its_own(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0", "x", "missing")
        assert (told(crowd.heard["x"]), told(crowd.heard["missing"])) == ([running("x")], ["gone"])

        apiserver.world.put(pod("x", phase="Failed"))
        crowd.hears("x", "Failed uid-of-x")

        assert sorted(alone(apiserver, "watch")) == ["missing", "x"]
        assert commons(apiserver, "watch") == [SELECTOR]

    def test_that_comes_into_the_set_needs_none(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0", "x")
        apiserver.world.put(pod("x", labels=JOB))
        crowd.for_a_while()
        apiserver.world.put(pod("x", labels=JOB, phase="Failed"))
        crowd.for_a_while()

        assert told(crowd.heard["x"]).count("Failed uid-of-x") == 1

    def test_that_loses_its_labels_is_not_gone(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0")

        apiserver.world.put(pod("w-0", phase="Failed"))

        crowd.hears("w-0", running("w-0"), "Failed uid-of-w-0")

    def test_of_which_there_are_many_widens_the_scope(self, apiserver: ApiServer, settled: Begin) -> None:
        others = [f"y-{number}" for number in range(9)]
        apiserver.world.put(*(pod(name) for name in others))
        crowd = settled("w-0", *others, "missing")

        assert [told(crowd.heard[name]) for name in others] == [[running(name)] for name in others]
        assert told(crowd.heard["missing"]) == ["gone"]
        assert commons(apiserver, "watch") == [""]
        assert alone(apiserver, "list") == []


class TestAPodThatIsGone:
    @pytest.mark.parametrize(
        ("is_in_order", "asked"), [(True, []), (False, ["w-0"])], ids=["by the watch", "when it was asked for"]
    )
    def test_is_gone(self, apiserver: ApiServer, settled: Begin, asked: list[str], *, is_in_order: bool) -> None:
        crowd = settled("w-0")
        if is_in_order:
            apiserver.world.put(deleting(pod("w-0", labels=JOB)))
        apiserver.world.delete("w-0")

        crowd.hears("w-0", "gone")

        assert alone(apiserver, "list") == asked

    def test_and_comes_again_is_another(self, apiserver: ApiServer, settled: Begin) -> None:
        crowd = settled("w-0")
        apiserver.world.put(deleting(pod("w-0", labels=JOB)))
        apiserver.world.delete("w-0")
        apiserver.world.put(pod("w-0", labels=JOB, uid="another"))

        crowd.hears("w-0", "gone", "Running another")

    def test_and_came_again_while_no_watch_was_open_is_another(self, apiserver: ApiServer, settled: Begin) -> None:
        apiserver.on("watch", Chunked((), Then.HANG))
        crowd = settled("w-0")
        apiserver.world.delete("w-0")
        apiserver.world.put(pod("w-0", labels=JOB, uid="another"))

        crowd.followers["w-0"].look(anew=True)

        crowd.hears("w-0", running("w-0"), "Running another")


def waiter(name: str, begun: list[str]) -> Waiter:
    """A command that waits for this pod."""
    return Waiter(
        name, name, 60, is_listed=True, begin=lambda: begun.append(name), give_up=begun.append, say=begun.append
    )


class TestPodsThatAreAwaited:
    def test_cost_one_list_and_one_watch_however_many_they_are(self, apiserver: ApiServer, begin: Begin) -> None:
        names = [f"n-{number}" for number in range(500)]
        crowd, begun = begin(selector=SELECTOR), list[str]()
        for name in names:
            crowd.hub.await_ready(waiter(name, begun))
        crowd.until(lambda: commons(apiserver, "watch"))

        apiserver.world.put(*(pod(name, labels=JOB) for name in names))
        crowd.until(lambda: len(begun) == len(names))

        assert sorted(begun) == sorted(names)
        assert (commons(apiserver, "list"), commons(apiserver, "watch")) == ([SELECTOR], [SELECTOR])
        assert alone(apiserver, "list") == []

    @pytest.mark.parametrize("selector", [SELECTOR, None])
    def test_are_known_at_once_beside_pods_that_are_followed(
        self, apiserver: ApiServer, begin: Begin, selector: str | None
    ) -> None:
        crowd, begun = begin("w-0", selector=selector), list[str]()
        crowd.settles(apiserver)
        asked = len(apiserver.asked("list"))

        for name in ("w-0", "w-1"):
            crowd.hub.await_ready(waiter(name, begun))
        crowd.until(lambda: len(begun) == 2)

        assert (begun, len(apiserver.asked("list"))) == (["w-0", "w-1"], asked)

    def test_are_heard_of_while_the_list_is_read(self, apiserver: ApiServer, begin: Begin) -> None:
        """A page of a list has 250 pods."""
        names = [f"n-{number:03}" for number in range(300)]
        apiserver.world.put(*(pod(name, labels=JOB) for name in names))
        crowd, begun = begin(selector=SELECTOR), list[str]()

        def await_another() -> None:
            assert not crowd.hub.knows(names[1]), "the list is complete"
            crowd.hub.await_ready(waiter(names[1], begun))

        crowd.hub.await_ready(replace(waiter(names[0], begun), begin=await_another))
        crowd.until(lambda: begun)

        assert begun == [names[1]]

    def test_are_watched_until_none_is_left(self, apiserver: ApiServer, begin: Begin) -> None:
        crowd = begin(selector=SELECTOR)
        crowd.hub.await_ready(waiter("missing", []))
        crowd.until(lambda: commons(apiserver, "watch"))

        crowd.hub.awaited.leave("missing")
        crowd.loop.touch(crowd.hub)
        crowd.until(lambda: crowd.hub.state == "idle")

        assert crowd.hub.waits() == (-1, 0, FOR_EVER)
