"""Commands that begin when their pod is Ready: which begins when, and what is said meanwhile."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.watches.awaited import Awaited, Waiter
from mpirt.rsh.watches.loop import FOR_EVER
from tests.unit.rsh.pods import DELETING, HEALTHY, PENDING, pod

UNREADY = pod(status={"conditions": [{"type": "Ready", "status": "False"}]})
UNSCHEDULABLE = pod(
    spec={"nodeName": ""},
    status={
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}],
        "containerStatuses": [],
    },
)


_PENDING: dict[str, object] = {"phase": "Pending", "conditions": [], "containerStatuses": []}
STARTS = pod(status=_PENDING)


class Crowd:
    """Commands that wait, and what became of them."""

    def __init__(self) -> None:
        self.now = 100.0
        self.is_silent = False
        self.awaited = Awaited(lambda: self.now, lambda: self.is_silent)
        self.begun: list[str] = []
        self.tried: list[str] = []
        self.failed: list[str] = []
        self.said: list[str] = []

    def enter(self, *pods: str, seconds: float = 600.0, is_listed: bool = True) -> None:
        for name in pods:
            give_up, say = self.failed.append, self.said.append
            begin = lambda name=name: self.begun.append(name)  # noqa: E731
            self.awaited.enter(
                Waiter(name, name, seconds, is_listed=is_listed, begin=begin, give_up=give_up, say=say)
            )

    def enter_early(self, *pods: str) -> None:
        """They come back when they were too early."""
        for name in pods:
            give_up, say, try_early = self.failed.append, self.said.append, partial(self.tried.append, name)
            waiter = Waiter(name, name, 600.0, is_listed=True, begin=lambda: None, give_up=give_up, say=say)
            self.awaited.enter(replace(waiter, try_early=try_early))

    def hear(self, name: str, found: Pod | None) -> None:
        self.awaited.hear(name, found)
        self.awaited.act()

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.awaited.act()


@pytest.fixture
def crowd() -> Crowd:
    return Crowd()


class TestACommandBegins:
    def test_when_its_pod_is_ready_and_no_other(self, crowd: Crowd) -> None:
        crowd.enter("w-0", "w-1")

        crowd.hear("w-1", HEALTHY)

        assert (crowd.begun, crowd.awaited.waits("w-0"), crowd.awaited.waits("w-1")) == (["w-1"], True, False)

    @pytest.mark.parametrize("found", [PENDING, UNREADY, UNSCHEDULABLE, DELETING, None])
    def test_not_before(self, crowd: Crowd, found: Pod | None) -> None:
        crowd.enter("w-0")

        crowd.hear("w-0", found)
        assert crowd.begun == []
        crowd.hear("w-0", HEALTHY)
        assert crowd.begun == ["w-0"]

    def test_at_once_if_neither_a_pod_nor_the_list_of_hosts_has_its_name(self, crowd: Crowd) -> None:
        crowd.enter("mistyped", "pending", is_listed=False)
        crowd.enter("w-0")

        crowd.awaited.listed(lambda name: name == "pending")
        assert crowd.awaited.timeout() == 0
        crowd.awaited.act()

        assert crowd.begun == ["mistyped"]

    def test_if_pods_may_not_be_listed_and_that_does_not_pass(self, crowd: Crowd) -> None:
        crowd.enter("w-0", "w-1")

        assert crowd.awaited.hear_refusal()
        crowd.later(9.9)
        assert (crowd.awaited.hear_refusal(), crowd.begun) == (True, [])
        crowd.later(0.1)
        assert not crowd.awaited.hear_refusal()
        crowd.awaited.act()

        assert crowd.begun == ["w-0", "w-1"]

    def test_later_if_pods_could_be_listed_meanwhile(self, crowd: Crowd) -> None:
        crowd.enter("w-0")
        crowd.awaited.hear_refusal()
        crowd.awaited.listed(lambda _: True)

        crowd.later(10)

        assert (crowd.awaited.hear_refusal(), crowd.begun) == (True, [])

    def test_not_if_its_pod_is_no_longer_ready_when_it_is_its_turn(self, crowd: Crowd) -> None:
        crowd.enter("w-0")

        crowd.awaited.hear("w-0", HEALTHY)
        crowd.hear("w-0", UNREADY)

        assert crowd.begun == []

    def test_not_after_it_has_left(self, crowd: Crowd) -> None:
        crowd.enter("w-0")
        crowd.awaited.leave("w-0")
        crowd.awaited.leave("w-0")

        crowd.hear("w-0", HEALTHY)

        assert (crowd.begun, bool(crowd.awaited), crowd.awaited.timeout()) == ([], False, FOR_EVER)

    def test_together_with_all_others_of_its_pod(self, crowd: Crowd) -> None:
        heard: list[int] = []

        def give_up(_why: str) -> None:
            raise AssertionError

        for number in range(3):
            begin = [lambda: crowd.awaited.leave(1), lambda: heard.append(1), lambda: heard.append(2)][number]
            crowd.awaited.enter(
                Waiter(number, "w-0", 60.0, is_listed=True, begin=begin, give_up=give_up, say=print)
            )
        crowd.hear("w-0", HEALTHY)

        assert (heard, bool(crowd.awaited)) == ([2], False)


_HELD_UP: dict[str, dict[str, object]] = {
    "no node": {"nodeName": ""},
    "a sidecar": {"containers": [{"name": "worker"}, {"name": "proxy"}]},
    "an init container": {"initContainers": [{"name": "first"}]},
    "a readiness gate": {"readinessGates": [{"conditionType": "Net"}]},
    "a readiness probe": {"containers": [{"name": "worker", "readinessProbe": {"exec": {}}}]},
    "a startup probe": {"containers": [{"name": "worker", "startupProbe": {"exec": {}}}]},
    "a hook": {"containers": [{"name": "worker", "lifecycle": {"postStart": {}}}]},
    "no container": {"containers": []},
}


class TestACommandThatMayBeEarly:
    def test_is_tried_when_its_node_starts_its_pod(self, crowd: Crowd) -> None:
        crowd.enter_early("w-0", "w-1")
        crowd.hear("w-0", UNSCHEDULABLE)
        assert crowd.tried == []

        crowd.hear("w-0", STARTS)

        assert (crowd.tried, crowd.awaited.waits("w-0"), crowd.awaited.waits("w-1")) == (["w-0"], False, True)

    @pytest.mark.parametrize(
        "found",
        [
            pytest.param(
                pod(metadata={"deletionTimestamp": "2026-11-20T12:00:00Z"}, status=_PENDING), id="is going"
            ),
            *(pytest.param(pod(spec=spec, status=_PENDING), id=name) for name, spec in _HELD_UP.items()),
        ],
    )
    def test_is_not_tried_if_more_is_needed(self, crowd: Crowd, found: Pod) -> None:
        crowd.enter_early("w-0")

        crowd.hear("w-0", found)

        assert crowd.tried == []

    def test_is_not_tried_beside_many_that_are(self, crowd: Crowd) -> None:
        for number in range(20):
            crowd.enter_early(f"w-{number}")
            crowd.hear(f"w-{number}", STARTS)
        assert crowd.tried == [f"w-{number}" for number in range(16)]

        crowd.later(3)
        crowd.hear("w-16", STARTS)

        assert crowd.tried[16:] == ["w-16"]

    def test_is_not_tried_among_many(self, crowd: Crowd) -> None:
        crowd.enter_early(*(f"w-{number}" for number in range(17)))

        crowd.hear("w-0", STARTS)

        assert crowd.tried == []

    def test_counts_once_when_it_waits_again(self, crowd: Crowd) -> None:
        crowd.enter_early("w-0", "w-1")
        crowd.hear("w-0", STARTS)
        crowd.enter("w-0")

        crowd.later(5)

        assert crowd.said == [
            "waiting for 2 of 2 workers: w-1 is not known to be Ready; w-0 is not known to be Ready"
        ]


class TestACommandGivesUp:
    @pytest.mark.parametrize(
        ("found", "words"),
        [
            (PENDING, "is not Ready: Pending: ContainerCreating"),
            (UNSCHEDULABLE, "is not Ready: Pending: 0/2 nodes are available"),
            (UNREADY, "is not Ready: Running"),
            (DELETING, "is not Ready: being deleted"),
            (None, "does not exist"),
        ],
    )
    def test_with_what_is_missing(self, crowd: Crowd, found: Any, words: str) -> None:
        crowd.enter("w-0", seconds=30)
        crowd.hear("w-0", found)

        assert crowd.failed == []
        crowd.later(30)
        assert crowd.failed == [f"pod w-0 {words}, after 30 s of waiting"]

    def test_if_the_api_server_does_not_answer(self, crowd: Crowd) -> None:
        crowd.enter("w-0", seconds=4)
        crowd.is_silent = True

        crowd.later(4)

        assert crowd.failed == [
            "pod w-0 is not known to be Ready: the API server does not answer, after 4 s of waiting"
        ]

    def test_if_pods_may_not_be_listed(self, crowd: Crowd) -> None:
        crowd.enter("w-0", seconds=4)
        crowd.awaited.hear_refusal()

        crowd.later(4)

        assert crowd.failed == ["pod w-0 is not known to be Ready: pods may not be listed, after 4 s of waiting"]

    def test_alone(self, crowd: Crowd) -> None:
        crowd.enter("w-0", seconds=2)
        crowd.enter("w-1", seconds=3)
        assert crowd.awaited.timeout() == 2

        crowd.later(2)

        assert (crowd.failed, crowd.awaited.waits("w-1"), crowd.awaited.timeout()) == (
            ["pod w-0 is not known to be Ready, after 2 s of waiting"],
            True,
            1,
        )

    def test_once_if_another_has_taken_it_along(self, crowd: Crowd) -> None:
        def leave(_why: str) -> None:
            crowd.failed.append("first")
            crowd.awaited.leave("second")

        crowd.awaited.enter(
            Waiter("first", "w-0", 2, is_listed=True, begin=lambda: None, give_up=leave, say=print)
        )
        crowd.awaited.enter(
            Waiter("second", "w-0", 2, is_listed=True, begin=lambda: None, give_up=crowd.failed.append, say=print)
        )
        crowd.later(2)

        assert (crowd.failed, bool(crowd.awaited)) == (["first"], False)


class TestALine:
    def test_names_what_is_missing_after_five_seconds_and_then_less_and_less_often(self, crowd: Crowd) -> None:
        crowd.enter("w-0", "w-1", "w-2", seconds=10_000)
        crowd.hear("w-0", HEALTHY)
        crowd.hear("w-1", PENDING)
        crowd.hear("w-2", None)
        line = "waiting for 2 of 3 workers: w-1 is not Ready: Pending: ContainerCreating; w-2 does not exist"

        moments = []
        for _ in range(10):
            crowd.later(crowd.awaited.timeout())
            moments.append(crowd.now - 100)

        assert moments[:5] == [5, 15, 35, 75, 155]
        assert moments[9] - moments[8] == 300
        assert set(crowd.said) == {line}

    def test_names_three_pods_at_most(self, crowd: Crowd) -> None:
        crowd.enter(*(f"w-{number}" for number in range(5)))

        crowd.later(5)

        unknown = "is not known to be Ready"
        assert crowd.said == [
            f"waiting for 5 of 5 workers: w-0 {unknown}; w-1 {unknown}; w-2 {unknown}; and 2 more"
        ]

    def test_says_when_it_is_over_if_there_was_one_before(self, crowd: Crowd) -> None:
        crowd.enter("w-0")
        crowd.later(7)

        crowd.hear("w-0", HEALTHY)
        crowd.enter("w-0")
        crowd.hear("w-0", HEALTHY)

        assert crowd.said[1:] == ["no worker is waited for any more, after 7 s"]
