"""A session before GO while its pod is not ready: what it waits for, and which container it enters."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.answers import Failure, Rejected
from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.session.events import (
    ApiSilent,
    Dial,
    Finish,
    LookAtPod,
    NotOpened,
    PodHidden,
    PodSeen,
    Say,
    Signalled,
    Tick,
    WatchPod,
)
from tests.unit.rsh import pods
from tests.unit.rsh.sessions import (
    V4,
    Run,
)

TERM = Signalled("TERM", 15)
MULTI = Rejected("which one?", Failure(400, "", "a container name must be specified", None, is_status=True))
UNSCHEDULED = Rejected("where?", Failure(400, "", "pod w does not have a host assigned", None, is_status=True))


def dial(protocol: str, now: float, *, container: str = "") -> Dial:
    """A dial of a session that began at 0 and has a minute to begin its command."""
    return Dial(protocol, container, 15.0, credentials_seconds=60.0 - now)


class TestWaitingForThePod:
    def test_it_is_watched_and_dialled_when_it_runs(self) -> None:
        run = Run()
        assert run.feed(Tick(), NotOpened(UNSCHEDULED)) == [dial(V4, run.now), WatchPod()]
        assert run.feed(PodSeen(pods.PENDING)) == []

        assert run.feed(PodSeen(pods.HEALTHY)) == [dial(V4, run.now)]

    def test_a_pod_that_runs_and_can_not_be_entered_is_dialled_after_a_pause(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(UNSCHEDULED), PodSeen(pods.HEALTHY), NotOpened(UNSCHEDULED))

        assert run.feed(PodSeen(pods.HEALTHY)) == []
        assert run.after(0.4) == []
        assert run.after(0.1) == [dial(V4, run.now)]

    @pytest.mark.parametrize(
        "looks",
        [
            pytest.param((pods.HEALTHY, pods.RESTARTED), id="two API servers of which one is behind"),
            pytest.param((pods.PENDING, pods.HEALTHY), id="runs and runs not"),
        ],
    )
    def test_a_pod_that_is_another_at_every_look_is_not_dialled_without_a_pause(
        self, looks: tuple[Pod, Pod]
    ) -> None:
        run = Run()
        run.feed(Tick())
        while run.now < 3.0 and run.count(Dial) < 20:
            dials = run.count(Dial)
            run.feed(NotOpened(UNSCHEDULED), *map(PodSeen, looks))
            while run.count(Dial) == dials:
                run.after(0.05)

        assert run.count(Dial) <= 6

    def test_attempts_are_not_used_up_by_one_that_is_another_at_every_look(self) -> None:
        run = Run(attempts=5)
        for look in (pods.HEALTHY, pods.RESTARTED, pods.HEALTHY, pods.RESTARTED):
            run.feed(Tick(), NotOpened(UNSCHEDULED), PodSeen(look))

        assert run.finish is None
        assert run.count(Dial) == 2

    def test_a_container_that_was_started_again_meanwhile_is_dialled_at_once(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(UNSCHEDULED), PodSeen(pods.HEALTHY), NotOpened(UNSCHEDULED))
        while run.now < 6.0:
            run.after(0.25, NotOpened(UNSCHEDULED), PodSeen(pods.HEALTHY))

        assert run.feed(PodSeen(pods.RESTARTED)) == [dial(V4, run.now)]

    def test_it_is_watched_once(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(UNSCHEDULED))
        run.after(0.25, NotOpened(UNSCHEDULED))

        assert (run.count(WatchPod), run.count(LookAtPod)) == (1, 1)

    def test_a_pod_that_has_ended_is_the_end(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(UNSCHEDULED), PodSeen(pods.EVICTED))

        assert run.finish == Finish(ExitCode.NO_POD, "pod w has ended: Failed (Evicted)")

    def test_news_of_it_change_nothing_while_a_shell_is_awaited(self) -> None:
        assert Run().open().feed(PodSeen(pods.HEALTHY)) == []

    def test_a_choice_among_several_containers_is_reported(self) -> None:
        two = pods.pod(spec={"containers": [{"name": "worker"}, {"name": "proxy"}]})
        run = Run()
        run.feed(Tick(), NotOpened(MULTI))
        assert run.after(3.0) == []

        told = (
            "pod w: of the containers worker, proxy the first is used; "
            "--container or MPIRT_CONTAINER chooses another"
        )
        assert run.feed(PodSeen(two)) == [Say(told), dial(V4, run.now, container="worker")]

    def test_a_container_that_the_pod_names_is_chosen_without_a_word(self) -> None:
        named = pods.pod(metadata={"annotations": {"kubectl.kubernetes.io/default-container": "worker"}})
        run = Run()
        run.feed(Tick(), NotOpened(MULTI))

        assert run.feed(PodSeen(named)) == [dial(V4, run.now, container="worker")]

    def test_where_the_pod_may_not_be_looked_at_the_person_must_choose(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(MULTI), PodHidden("forbidden"))

        line = (
            "which container of pod w? It can't be looked up (forbidden); "
            "name one by --container or MPIRT_CONTAINER"
        )
        assert run.finish == Finish(ExitCode.CONFIG, line)

    def test_a_pod_that_may_not_be_looked_at_is_still_dialled(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(UNSCHEDULED), PodHidden("forbidden"))

        assert run.finish is None

    def test_a_look_that_fails_for_a_moment_is_not_the_end_of_a_choice(self) -> None:
        run = Run()
        run.feed(Tick(), NotOpened(MULTI), ApiSilent("overloaded"))

        assert run.feed(PodSeen(pods.HEALTHY)) == [dial(V4, run.now, container="worker")]
