"""A keeper that is not found again: whether it, its container or its pod is gone."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.session.events import (
    Closed,
    Event,
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
from tests.unit.rsh.sessions import NOT_FOUND, SUCCESS, exit_status

RESTARTED = "the container of pod w was restarted (OOMKilled, code 137)"
NEXT_ONE = "the container of pod w was restarted"
ENDED = "the container of pod w has ended"
GONE = "the keeper of the command in pod w is gone: something has killed it, or its lease was over"
KILLED = "something in pod w ended the command from outside (code 137, signal 9)"
SAME, OTHER, NOT_KNOWN = 4000, 5000, 0


def held(*news: Event) -> HeldRun:
    """A command in a healthy pod, and what happens to its connection."""
    run = HeldRun().begin()
    run.feed(PodSeen(pods.HEALTHY), *news)
    return run


class TestAPodThatTells:
    """After the connection was lost: what has become of the pod, the container and the keeper."""

    @pytest.mark.parametrize(
        ("news", "code", "line"),
        [
            (PodGone(), ExitCode.POD_DELETED, "pod w was deleted"),
            (PodSeen(pods.RESTARTED), ExitCode.CONTAINER_DIED, RESTARTED),
        ],
        ids=["the pod is gone", "the container was restarted"],
    )
    def test_a_loss_that_the_pod_explains_is_the_end_at_once(self, news: Event, code: int, line: str) -> None:
        run = HeldRun.lost()
        run.feed(news)

        assert run.finish == Finish(code, line)

    @pytest.mark.parametrize("start", [NOT_KNOWN, SAME, OTHER], ids=["unknown", "the same", "the next"])
    def test_a_keeper_that_is_gone_may_be_explained_by_its_pod(self, start: int) -> None:
        run = HeldRun.lost()
        run.finds_nobody(container_start=start)
        run.feed(PodSeen(pods.RESTARTED))

        assert run.finish == Finish(ExitCode.CONTAINER_DIED, RESTARTED)

    @pytest.mark.parametrize(
        ("status", "start", "seconds"),
        [
            pytest.param(None, NOT_KNOWN, 9.9, id="gone from what may be the next container"),
            pytest.param(None, OTHER, 2.0, id="gone from the next container"),
            pytest.param(exit_status(137), SAME, 2.9, id="killed with its bridge"),
            pytest.param(exit_status(137), NOT_KNOWN, 9.9, id="killed in what may be another container"),
        ],
    )
    def test_a_keeper_that_is_gone_may_be_explained_later(
        self, status: Received | None, start: int, seconds: float
    ) -> None:
        run = held(status or Closed("reset"))
        run.finds_nobody(container_start=start)
        run.after(seconds, PodSeen(pods.HEALTHY))
        assert run.finish is None

        run.feed(PodSeen(pods.RESTARTED))

        assert run.finish == Finish(ExitCode.CONTAINER_DIED, RESTARTED)

    def test_a_command_without_a_lease_that_was_killed_may_have_died_with_its_container(self) -> None:
        run = HeldRun(patience=Patience(lease=0)).begin()
        run.feed(PodSeen(pods.HEALTHY), exit_status(137))
        run.after(2.9, PodSeen(pods.RESTARTED))

        assert run.code == ExitCode.CONTAINER_DIED


class TestAPodThatTellsNothing:
    @pytest.mark.parametrize(
        ("status", "start", "seconds", "code", "line"),
        [
            pytest.param(None, SAME, 0.6, ExitCode.UNKNOWN_END, GONE, id="gone from a container that lives"),
            pytest.param(SUCCESS, SAME, 0.6, ExitCode.UNKNOWN_END, GONE, id="gone, and a success reported"),
            pytest.param(None, NOT_KNOWN, 10.0, ExitCode.UNKNOWN_END, GONE, id="gone from an unknown container"),
            pytest.param(None, OTHER, 3.0, ExitCode.CONTAINER_DIED, NEXT_ONE, id="gone from the next container"),
            pytest.param(SUCCESS, OTHER, 3.0, ExitCode.CONTAINER_DIED, NEXT_ONE, id="a success, and the next one"),
            pytest.param(exit_status(137), OTHER, 3.0, ExitCode.CONTAINER_DIED, NEXT_ONE, id="killed with it"),
            pytest.param(exit_status(137), SAME, 3.0, 137, KILLED, id="killed with its bridge in one that lives"),
        ],
    )
    def test_a_keeper_that_is_gone_is_the_end_after_a_while(
        self, status: Received | None, start: int, seconds: float, code: int, line: str
    ) -> None:
        """An exec into the next container is faster than the kubelet's word, which has its time all the same."""
        run = held(status or Closed("reset"))
        run.finds_nobody(container_start=start)
        run.feed(PodSeen(pods.HEALTHY))
        run.after(seconds - 0.1)
        assert run.finish is None

        run.after(0.101)

        assert run.finish == Finish(code, line)

    @pytest.mark.parametrize(
        ("before", "seconds"), [((PodSeen(pods.HEALTHY),), 0.6), ((), 3.0)], ids=["that is read", "that is not"]
    )
    def test_a_container_that_was_killed_and_is_not_found_is_the_end_whatever_becomes_of_a_pod(
        self, before: tuple[Event, ...], seconds: float
    ) -> None:
        run = held(exit_status(137))
        run.until_dialled(*before, NotOpened(NOT_FOUND))
        run.after(seconds)

        assert run.finish == Finish(ExitCode.CONTAINER_DIED, ENDED)

    @pytest.mark.parametrize(
        ("pod", "code"),
        [(pods.REPLACED, ExitCode.POD_DELETED), (pods.HEALTHY, ExitCode.CONTAINER_DIED)],
        ids=["another pod", "the same pod"],
    )
    def test_a_container_that_is_not_found_may_be_another_pods_until_the_pod_was_read(
        self, pod: Pod, code: int
    ) -> None:
        run = held(exit_status(137))
        run.until_dialled(NotOpened(NOT_FOUND))
        run.after(2.0)
        assert run.finish is None

        run.feed(PodSeen(pod))

        assert run.code == code

    def test_the_runtimes_word_has_to_do_where_the_pod_may_not_be_read(self) -> None:
        run = HeldRun().begin()
        run.feed(exit_status(137))
        run.finds_nobody()
        run.feed(PodHidden("may not"))
        run.after(3.0)

        assert run.code == 137
