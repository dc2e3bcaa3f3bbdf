"""How a command ends that a keeper holds: by a signal, by its lease, with its pod."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.session.events import (
    ApiAnswers,
    Event,
    Finish,
    LookAtPod,
    NotOpened,
    PodGone,
    PodSeen,
    Received,
    Signalled,
    StdinBroken,
    StdoutBroken,
    WatchPod,
)
from mpirt.rsh.session.machine import State
from mpirt.rsh.session.task import Grace
from tests.unit.rsh import pods
from tests.unit.rsh.keepers import END, LEASE, SIGNAL, HeldRun
from tests.unit.rsh.sessions import DIALING, HUP, INT, NOT_FOUND, SUCCESS, TERM, USR1, exit_status

END_BY_TERM = b"E\x0f" + (3000).to_bytes(4, "little")
KILL_NOW = b"E\x09" + bytes(4)
CONTINUE = b"K\x12"


END_BY_HUP, END_BY_INT = b"E\x01" + END_BY_TERM[2:], b"E\x02" + END_BY_TERM[2:]
# fmt: off
CONTROLS: dict[str, tuple[tuple[Event, ...], list[bytes]]] = {
    "a signal that announces something": ((USR1,), [b"K\x0a"]),
    "a second signal hurries": ((TERM, INT), [END_BY_TERM, KILL_NOW]),
    "a signal after a HUP is the first": ((HUP, TERM), [END_BY_HUP, END_BY_TERM]),
    "and the next one hurries": ((HUP, TERM, TERM), [END_BY_HUP, END_BY_TERM, KILL_NOW]),
    "a HUP between two of them does not": ((INT, HUP, INT), [END_BY_INT, CONTINUE, KILL_NOW]),
    "nor does a stdin that breaks then": ((TERM, StdinBroken("input/output error")), [END_BY_TERM]),
    "nor a stdout that is lost to the same signal": ((INT, StdoutBroken()), [END_BY_INT]),
}
# fmt: on


class TestSignals:
    def test_term_ends_it_and_its_own_code_counts(self) -> None:
        run = HeldRun().begin()
        run.meets(TERM)
        assert run.keeper.controls[1:] == [END_BY_TERM]

        run.keeper.writes(b"bye")
        run.ends(5)

        assert run.finish == Finish(5)
        assert run.written(1) == b"bye"

    @pytest.mark.parametrize(("events", "controls"), CONTROLS.values(), ids=CONTROLS)
    def test_what_happens_here_reaches_the_command(self, events: tuple[Event, ...], controls: list[bytes]) -> None:
        run = HeldRun(has_stdin=True).begin()
        run.meets(*events)

        assert run.keeper.controls[1:] == controls

    @pytest.mark.parametrize(
        ("before", "grace"),
        [(PodSeen(pods.DELETING_IN_30_S), 27_000), (StdoutBroken(), 3000)],
        ids=["pod", "stdout"],
    )
    def test_the_first_signal_has_its_grace_where_something_else_has_begun_the_end(
        self, before: PodSeen | StdoutBroken, grace: int
    ) -> None:
        run = HeldRun().begin()
        run.meets(PodSeen(pods.HEALTHY), before)
        run.meets(TERM)
        assert run.keeper.own_ends == [b"E\x0f" + grace.to_bytes(4, "little")]
        assert run.keeper.controls[1:] == [END_BY_TERM]

        run.meets(TERM)
        assert run.keeper.controls[2:] == [KILL_NOW]

    @pytest.mark.parametrize("takes_over", [False, True], ids=["one process", "another process"])
    @pytest.mark.parametrize(
        ("before", "grace"),
        [(TERM, 3000), (PodSeen(pods.DELETING_IN_30_S), 27_000), (StdoutBroken(), 3000)],
        ids=["a signal", "the pod", "stdout"],
    )
    def test_a_hup_while_it_is_ended_already_changes_nothing(
        self, before: Signalled | PodSeen | StdoutBroken, grace: int, *, takes_over: bool
    ) -> None:
        """The launcher has ended after it has told its agents to."""
        run = HeldRun().begin()
        run.meets(PodSeen(pods.HEALTHY), before, HUP)
        if takes_over and before == TERM:
            run.is_killed()
            run.reconnect()

        controls = run.keeper.own_ends + run.keeper.controls[1:]
        assert controls == [b"E\x0f" + grace.to_bytes(4, "little"), CONTINUE]

    def test_a_signal_after_such_a_hup_is_given_once_though_another_process_takes_over(self) -> None:
        run = HeldRun().begin()
        run.meets(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING_IN_30_S), HUP, USR1)
        run.is_killed()
        run.reconnect()

        assert run.keeper.controls[1:] == [CONTINUE, b"K\x0a"]

    def test_a_lost_stdout_ends_it(self) -> None:
        run = HeldRun().begin()
        run.meets(StdoutBroken())
        assert run.keeper.own_ends == [END_BY_TERM]

        run.after(5.0)

        assert run.finish == Finish(141)

    def test_a_stdout_that_cannot_be_written_ends_it_with_a_code_of_ours(self) -> None:
        run = HeldRun().begin()
        run.meets(StdoutBroken("no space left on device"))
        run.ends(143, by=END)

        line = "the output of pod w can't be written: no space left on device; the command ended with 143"
        assert run.finish == Finish(ExitCode.UNKNOWN_END, line)

    def test_one_that_never_reports_is_left_after_its_grace(self) -> None:
        run = HeldRun().begin()
        run.meets(TERM)

        run.after(4.4)
        assert run.finish is None

        run.after(0.2)
        assert run.finish == Finish(143)


class TestASignalWithoutAConnection:
    def test_a_signal_without_a_connection_is_over_with_the_container_whatever_its_grace(
        self,
    ) -> None:
        run = HeldRun(grace=Grace(60.0)).begin()
        run.meets(PodSeen(pods.HEALTHY), TERM)
        run.feed(PodSeen(pods.DELETING), exit_status(137))
        run.until_dialled(NotOpened(NOT_FOUND))

        assert run.finish == Finish(143, "pod w is being deleted")

    def test_a_signal_without_a_connection_is_over_with_the_patience_for_the_node(self) -> None:
        run = HeldRun.lost(grace=Grace(60.0))
        run.until_dialled(ApiAnswers(), NotOpened(DIALING), TERM, PodSeen(pods.DELETING))
        run.after(25.0)

        line = "pod w is out of reach; its command ends there within 180 s"
        assert run.finish == Finish(143, line)

    def test_a_signal_without_a_connection_names_a_keeper_that_is_gone(self) -> None:
        run = HeldRun.lost()
        run.finds_nobody()
        run.feed(TERM)
        run.after(0.6)

        line = "the keeper of the command in pod w is gone: something has killed it, or its lease was over"
        assert run.finish == Finish(143, line)


NO_LEASE = "the command in pod w was ended there: it had no connection for its lease of 180 s"
SIGNALLED = "something in pod w has signalled the command's keeper"


class TestACommandThatWasEnded:
    """Its 0 is no success: a program that is told to end may well end with it."""

    @pytest.mark.parametrize(
        ("by", "code", "ours", "why"),
        [
            (LEASE, 0, ExitCode.CONNECTION_LOST, NO_LEASE),
            (LEASE, 143, ExitCode.CONNECTION_LOST, NO_LEASE),
            (SIGNAL, 0, ExitCode.UNKNOWN_END, SIGNALLED),
            (SIGNAL, 143, 143, SIGNALLED),
        ],
    )
    def test_a_command_that_was_ended_by_something_else_has_no_success(
        self, by: int, code: int, ours: int, why: str
    ) -> None:
        run = HeldRun().begin()
        run.reconnect()
        run.ends(code, by=by)

        assert run.finish == Finish(ours, f"{why}; the command ended with {code}")

    def test_a_command_that_was_ended_by_its_lease_is_lost_though_a_signal_came_then(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.feed(TERM)
        run.reconnect()
        run.ends(0, by=LEASE)

        assert run.code == ExitCode.CONNECTION_LOST

    def test_a_command_that_was_ended_for_a_reason_that_was_lost_with_a_switchboard_is_not_known(self) -> None:
        run = HeldRun().begin()
        run.meets(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING))
        run.is_killed()
        run.reconnect()
        run.ends(0, by=END)

        line = (
            "the command in pod w was ended by a switchboard that was killed before it could say why; "
            "the command ended with 0"
        )
        assert run.finish == Finish(ExitCode.UNKNOWN_END, line)

    def test_a_command_that_was_ended_by_a_signal_to_us_has_its_own_code(self) -> None:
        run = HeldRun().begin()
        run.meets(TERM)
        run.ends(0, by=END)

        assert run.finish == Finish(0)

    def test_a_command_that_was_ended_by_a_later_launcher_says_so(self) -> None:
        run = HeldRun().begin()
        run.keeper.is_fenced()
        run.carry()

        line = "the command in pod w was ended by a later launcher of its job (MPIRT_FENCE)"
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    def test_a_command_that_was_ended_by_a_later_launcher_after_its_end_has_its_own_code(self) -> None:
        run = HeldRun().begin()
        run.keeper.ends(7)
        run.keeper.is_fenced()
        run.carry()
        run.after(1.0)

        assert run.finish == Finish(7)


class TestACommandThatWasKilled:
    @pytest.mark.parametrize(
        ("news", "code", "why"),
        [
            (PodGone(), ExitCode.POD_DELETED, "pod w was deleted"),
            (PodSeen(pods.REPLACED), ExitCode.POD_DELETED, "pod w was deleted, and another one has its name now"),
            (PodSeen(pods.DELETING), ExitCode.POD_DELETED, "pod w is being deleted"),
            (PodSeen(pods.RESTARTED), ExitCode.CONTAINER_DIED, "the container of pod w was restarted"),
        ],
        ids=["deleted", "replaced", "being deleted", "restarted"],
    )
    def test_a_command_that_was_killed_with_its_bridge_may_have_died_with_its_pod(
        self, news: Event, code: int, why: str
    ) -> None:
        """Its keeper was the last to be killed, and had time for its report."""
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.keeper.ends(9, signal=True)
        run.carry()
        run.feed(exit_status(137), PodSeen(pods.HEALTHY))
        run.after(0.5)
        assert run.finish is None

        run.feed(news)

        assert run.finish is not None
        assert run.code == code
        assert run.finish.line.startswith(why)
        assert run.finish.line.endswith("; the command ended with 137")

    def test_a_command_that_was_killed_with_its_bridge_in_a_pod_that_lives_has_its_own_code(self) -> None:
        run = HeldRun().begin()
        run.keeper.ends(9, signal=True)
        run.carry()
        run.feed(exit_status(137), PodSeen(pods.HEALTHY))
        run.after(0.6)

        assert run.finish == Finish(137)

    @pytest.mark.parametrize("status", [SUCCESS, exit_status(0)], ids=["success", "code 0"])
    def test_a_command_that_was_killed_alone_has_its_own_code_at_once(self, status: Received) -> None:
        run = HeldRun().begin()
        run.keeper.ends(9, signal=True)
        run.carry()
        run.feed(status)

        assert run.finish == Finish(137)


class TestThePod:
    @pytest.mark.parametrize("pod", [pods.REPLACED, pods.RESTARTED], ids=["another pod", "another container"])
    def test_a_pod_that_is_newer_than_the_command_is_its_own_whatever_was_told_before(self, pod: Pod) -> None:
        """The watch was dead when the command was started."""
        run = HeldRun.lost()
        run.feed(PodSeen(pod, is_first=True))
        run.reconnect()
        assert run.session.phase.state is State.RUNNING

        run.cut()
        run.feed(PodSeen(pod))

        assert run.finish is None

    def test_a_pod_that_was_watched_before_the_command_is_followed_anew(self) -> None:
        """What was told then may be older than the command."""
        run = HeldRun()
        run.until_dialled(NotOpened(NOT_FOUND))
        run.until_dialled()
        assert run.count(WatchPod) == 1
        run.connect()

        assert WatchPod(anew=False) in run.after(0.0)

    def test_a_pod_that_is_deleted_has_its_command_ended_first(self) -> None:
        run = HeldRun().begin()
        run.meets(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING))
        assert run.keeper.own_ends == [END_BY_TERM]

        run.ends(0)

        line = "pod w is being deleted; the command ended with 0"
        assert run.finish == Finish(ExitCode.POD_DELETED, line)

    def test_a_deleted_pods_command_has_the_pods_grace_less_the_time_for_its_report(self) -> None:
        run = HeldRun().begin()
        run.meets(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING_IN_30_S))
        assert run.keeper.own_ends == [b"E\x0f" + (27_000).to_bytes(4, "little")]

        for _ in range(13):
            run.after(2.0)
            run.carry()
        assert run.finish is None

        run.keeper.writes(b"saved")
        run.ends(0)

        assert run.written(1) == b"saved"
        line = "pod w is being deleted; the command ended with 0"
        assert run.finish == Finish(ExitCode.POD_DELETED, line)

    def test_a_grace_that_was_set_is_the_most_that_a_deleted_pods_command_gets(self) -> None:
        run = HeldRun(grace=Grace(1.0)).begin()
        run.meets(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING_IN_30_S))

        assert run.keeper.own_ends == [b"E\x0f" + (1000).to_bytes(4, "little")]

    def test_a_deleted_pod_whose_connection_ends_is_the_end(self) -> None:
        run = HeldRun().begin()
        run.meets(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING))
        run.cut()

        assert run.finish == Finish(ExitCode.POD_DELETED, "pod w is being deleted")

    def test_a_restarted_container_is_no_evidence_against_a_keeper_that_answers(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), PodSeen(pods.RESTARTED))

        assert run.finish is None

    def test_the_pod_is_looked_at_when_signs_of_life_are_missing(self) -> None:
        run = HeldRun().begin()
        run.after(1.0)

        assert LookAtPod() in run.after(5.0)
