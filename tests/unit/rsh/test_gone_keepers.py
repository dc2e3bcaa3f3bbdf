"""A keeper that is not found again: whether it, its container or its pod is gone."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.answers import Failure, ServerFailed
from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.session.events import (
    Finish,
    NotOpened,
    PodGone,
    PodHidden,
    PodSeen,
    Received,
)
from mpirt.rsh.session.task import Patience
from tests.unit.rsh import pods
from tests.unit.rsh.keepers import HeldRun
from tests.unit.rsh.sessions import SUCCESS, exit_status

NOT_FOUND = ServerFailed("z", Failure(500, "", "container not found", None, is_status=True))


class TestWhatIsGone:
    """After the connection was lost: what has become of the pod, the container and the keeper."""

    def test_a_pod_that_is_gone_is_the_end_at_once(self) -> None:
        run = HeldRun.lost()
        run.feed(PodGone())

        assert run.finish == Finish(ExitCode.POD_DELETED, "pod w was deleted")

    def test_a_container_that_was_restarted_is_the_end_at_once(self) -> None:
        run = HeldRun.lost()
        run.feed(PodSeen(pods.RESTARTED))

        assert run.code == ExitCode.CONTAINER_DIED

    def test_a_keeper_that_is_gone_from_a_living_container_is_the_end(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.finds_nobody()
        run.feed(PodSeen(pods.HEALTHY))
        assert run.finish is None
        run.after(0.6)

        line = "the keeper of the command in pod w is gone: something has killed it, or its lease was over"
        assert run.finish == Finish(ExitCode.UNKNOWN_END, line)

    def test_a_keeper_that_was_killed_alone_is_the_end_though_its_bridge_reports_success(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), SUCCESS)
        run.finds_nobody()
        run.after(0.6)

        assert run.code == ExitCode.UNKNOWN_END

    @pytest.mark.parametrize("ending", [SUCCESS, exit_status(137)])
    def test_the_next_container_proves_the_end_of_the_one_before(self, ending: Received) -> None:
        """An exec into it is faster than the kubelet's word on it, which has its time all the same."""
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), ending)
        run.finds_nobody(container_start=5000)
        run.feed(PodSeen(pods.HEALTHY))
        assert run.finish is None
        run.after(3.0)

        assert run.finish == Finish(ExitCode.CONTAINER_DIED, "the container of pod w was restarted")

    @pytest.mark.parametrize("start", [0, 5000])
    def test_what_became_of_a_keeper_that_is_gone_the_pod_may_tell_later(self, start: int) -> None:
        run = HeldRun.lost()
        run.finds_nobody(container_start=start)
        run.feed(PodSeen(pods.HEALTHY))
        run.after(2.0, PodSeen(pods.RESTARTED))

        assert run.code == ExitCode.CONTAINER_DIED
        assert run.finish.line == "the container of pod w was restarted (OOMKilled, code 137)"

    def test_where_the_container_cannot_be_told_from_the_next_the_kubelet_has_longer(self) -> None:
        run = HeldRun.lost()
        run.finds_nobody(container_start=0)
        run.after(9.9, PodSeen(pods.HEALTHY))
        assert run.finish is None
        run.after(0.2)

        assert run.code == ExitCode.UNKNOWN_END

    def test_what_became_of_a_keeper_that_is_gone_the_pod_may_tell(self) -> None:
        run = HeldRun.lost()
        run.finds_nobody()
        run.feed(PodSeen(pods.RESTARTED))

        assert run.code == ExitCode.CONTAINER_DIED

    def test_a_container_that_was_killed_and_is_not_found_is_the_end_before_the_pod_says_why(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.feed(exit_status(137))
        run.until_dialled(PodSeen(pods.HEALTHY), NotOpened(NOT_FOUND))
        run.after(0.6)

        assert run.finish == Finish(ExitCode.CONTAINER_DIED, "the container of pod w has ended")

    @pytest.mark.parametrize(
        ("pod", "code"),
        [(pods.REPLACED, ExitCode.POD_DELETED), (pods.HEALTHY, ExitCode.CONTAINER_DIED)],
        ids=["another pod", "the same pod"],
    )
    def test_a_container_that_is_not_found_may_be_another_pods_until_the_pod_was_read(
        self, pod: Pod, code: int
    ) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), exit_status(137))
        run.until_dialled(NotOpened(NOT_FOUND))
        run.after(2.0)
        assert run.finish is None

        run.feed(PodSeen(pod))

        assert run.code == code

    def test_a_container_that_is_not_found_is_the_end_where_the_pod_cannot_be_read(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), exit_status(137))
        run.until_dialled(NotOpened(NOT_FOUND))
        run.after(3.0)

        assert run.finish == Finish(ExitCode.CONTAINER_DIED, "the container of pod w has ended")

    @pytest.mark.parametrize(("start", "seconds"), [(4000, 2.9), (0, 9.9)], ids=["the same", "not known"])
    def test_a_keeper_that_was_killed_with_its_bridge_may_have_died_with_its_container(
        self, start: int, seconds: float
    ) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), exit_status(137))
        run.finds_nobody(container_start=start)
        run.after(seconds, PodSeen(pods.HEALTHY))
        assert run.finish is None

        run.feed(PodSeen(pods.RESTARTED))

        line = "the container of pod w was restarted (OOMKilled, code 137)"
        assert run.finish == Finish(ExitCode.CONTAINER_DIED, line)

    def test_a_keeper_that_was_killed_with_its_bridge_in_a_container_that_lives_was_killed_by_something(
        self,
    ) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), exit_status(137))
        run.finds_nobody()
        run.feed(PodSeen(pods.HEALTHY))
        run.after(3.0)

        assert run.finish == Finish(137, "something in pod w ended the command from outside (code 137, signal 9)")

    def test_a_command_without_a_lease_that_was_killed_may_have_died_with_its_container(self) -> None:
        run = HeldRun(patience=Patience(lease=0)).begin()
        run.feed(PodSeen(pods.HEALTHY), exit_status(137))
        run.after(2.9, PodSeen(pods.RESTARTED))

        assert run.code == ExitCode.CONTAINER_DIED

    def test_where_nobody_may_look_the_runtimes_word_has_to_do(self) -> None:
        run = HeldRun().begin()
        run.is_open = False
        run.keeper.disconnect()
        run.feed(exit_status(137))
        run.finds_nobody()
        run.feed(PodHidden("may not"))
        run.after(3.0)

        assert run.code == 137
