"""A command that a keeper holds, sentence by sentence."""

from __future__ import annotations

import pytest

from mpirt.errors import ExitCode
from mpirt.kubeapi.request.answers import ConnectionLost, Failure, Overloaded, ServerFailed, TimedOut
from mpirt.rsh.pod.facts import Pod
from mpirt.rsh.session.ending import Grace
from mpirt.rsh.session.events import (
    ApiAnswers,
    ApiSilent,
    Dial,
    Finish,
    HangUp,
    Listening,
    LookAtPod,
    Note,
    NotOpened,
    Opened,
    PodGone,
    PodHidden,
    PodSeen,
    Received,
    Say,
    Send,
    Signalled,
    StdinBroken,
    StdinRead,
    StdoutBroken,
    Tick,
    WatchPod,
    Written,
)
from mpirt.rsh.session.holding import Patience
from mpirt.rsh.session.machine import State
from tests.unit.rsh import pods
from tests.unit.rsh.keepers import END, LEASE, SIGNAL, HeldRun
from tests.unit.rsh.sessions import GO, SUCCESS, V4, V5, exit_status, failure_status, no_keeper

TERM, INT, USR1, HUP = Signalled("TERM", 15), Signalled("INT", 2), Signalled("USR1", 10), Signalled("HUP", 1)
DIALING = ServerFailed("x", Failure(500, "", "error dialing backend: refused", None, is_status=True))
NOT_FOUND = ServerFailed("z", Failure(500, "", "container not found", None, is_status=True))
UNAVAILABLE = ServerFailed(
    "x", Failure(500, "", "rpc error: code = Unavailable desc = connection error", None, is_status=True)
)
BUSY = Overloaded("y", Failure(429, "", "too many requests", 7.0, is_status=True))
END_BY_TERM = b"E\x0f" + (3000).to_bytes(4, "little")
KILL_NOW = b"E\x09" + bytes(4)
CONTINUE = b"K\x12"


class TestOneConnection:
    def test_the_command_is_started_by_its_keeper(self) -> None:
        run = HeldRun().begin()

        assert run.session.state is State.RUNNING
        assert run.keeper.starts == 1
        assert GO not in run.actions

    def test_its_output_and_its_code_are_ours(self) -> None:
        run = HeldRun().begin()
        run.keeper.writes(b"out", b"err")
        run.keeper.ends(7)
        run.carry()
        run.after(1.0)

        assert (run.written(1), run.written(2)) == (b"out", b"err")
        assert run.finish == Finish(7)
        assert run.keeper.is_done

    def test_a_command_that_a_signal_ends_has_its_number(self) -> None:
        run = HeldRun().begin()
        run.keeper.ends(9, signal=True)
        run.carry()
        run.after(1.0)

        assert run.finish == Finish(137)

    def test_who_has_the_end_waits_for_the_connections_own_for_a_moment_only(self) -> None:
        run = HeldRun().begin()
        run.keeper.ends(0)
        run.carry()
        assert run.finish is None

        run.cut("the server closed it (1000)")

        assert run.finish == Finish(0)

    def test_the_servers_word_adds_nothing_to_the_keepers(self) -> None:
        run = HeldRun().begin()
        run.keeper.ends(0)
        run.carry()
        run.feed(exit_status(1))

        assert run.finish == Finish(0)

    def test_output_that_something_still_holds_open_is_told(self) -> None:
        run = HeldRun().begin()
        run.keeper.ends(0, left_open=True)
        run.carry()

        line = "pod w: something that the command left behind still has its output open; what that writes is lost"
        assert Say(line) in run.actions

    def test_stdin_goes_in_as_far_as_there_is_room(self) -> None:
        run = HeldRun(has_stdin=True).begin()
        assert run.session.stdin_room == 1048576

        for _ in range(16):
            run.feed(StdinRead(b"x" * 65536))
        assert run.session.stdin_room == 0

        run.carry()
        assert run.session.stdin_room == 1048576
        assert run.keeper.stdin == b"x" * 1048576

    def test_the_end_of_stdin_is_told(self) -> None:
        run = HeldRun(has_stdin=True).begin()
        run.feed(StdinRead(b"x"), StdinRead(b""))
        run.carry()

        assert run.keeper.stdin_ended
        assert run.session.stdin_room == 0

    def test_more_output_comes_when_what_came_was_written(self) -> None:
        run = HeldRun().begin()
        run.keeper.writes(b"x" * 3 * 1024 * 1024)
        run.carry()
        assert len(run.written(1)) == 1024 * 1024

        run.feed(Written(1024 * 1024, 0))
        run.carry()

        assert len(run.written(1)) == 2 * 1024 * 1024

    def test_an_idle_session_asks_its_keeper_for_a_sign_of_life(self) -> None:
        run = HeldRun().begin()
        for _ in range(30):
            run.after(2.0)
            run.carry()

        assert run.session.state is State.RUNNING

    def test_the_pod_is_watched_after_a_second(self) -> None:
        run = HeldRun().begin()
        assert run.count(WatchPod) == 0

        assert WatchPod(anew=False) in run.after(1.0)

    def test_a_command_that_cannot_be_started_is_told(self) -> None:
        run = HeldRun()
        run.keeper.fails = b"can't execute /bin/bash"
        run.begin()
        run.after(1.0)

        line = "the command could not be started in pod w: can't execute /bin/bash"
        assert run.finish == Finish(ExitCode.NO_SHELL, line)
        assert run.keeper.is_done

    def test_a_command_that_cannot_be_started_is_told_by_the_next_process_though_the_keeper_has_ended(
        self,
    ) -> None:
        run = HeldRun()
        run.keeper.fails = b"can't execute /bin/bash"
        run.begin()
        assert run.finish is None

        run.is_killed()
        run.after(0.1)

        line = "the command could not be started in pod w: can't execute /bin/bash"
        assert run.finish == Finish(ExitCode.NO_SHELL, line)

    def test_a_command_that_is_told_to_end_before_it_was_started_ends_as_one_that_was(self) -> None:
        run = HeldRun()
        run.keeper.fails = b"it was ended before it began"
        run.until_dialled()
        run.connect(breaks_after=1)
        run.feed(TERM)
        run.reconnect()
        run.after(1.0)

        assert run.finish == Finish(143)
        assert run.keeper.is_done

    def test_nonsense_is_the_end_and_the_command_is_not_left_behind(self) -> None:
        run = HeldRun().begin()
        run.keeper.says += b"\xff" * 16
        run.carry()

        assert run.finish is not None
        assert run.finish.code == ExitCode.PEER


class TestSignals:
    def test_a_signal_that_announces_something_goes_to_the_command(self) -> None:
        run = HeldRun().begin()
        run.feed(USR1)
        run.carry()

        assert run.keeper.controls[1:] == [b"K\x0a"]
        assert run.session.state is State.RUNNING

    def test_term_ends_it_and_its_own_code_counts(self) -> None:
        run = HeldRun().begin()
        run.feed(TERM)
        run.carry()
        assert run.keeper.controls[1:] == [END_BY_TERM]

        run.keeper.writes(b"bye")
        run.keeper.ends(5)
        run.carry()
        run.after(1.0)

        assert run.finish == Finish(5)
        assert run.written(1) == b"bye"

    def test_a_second_signal_hurries(self) -> None:
        run = HeldRun().begin()
        run.feed(TERM, INT)
        run.carry()

        assert run.keeper.controls[1:] == [END_BY_TERM, KILL_NOW]

    @pytest.mark.parametrize(
        ("before", "grace"),
        [(PodSeen(pods.DELETING_IN_30_S), 27_000), (StdoutBroken(), 3000)],
        ids=["pod", "stdout"],
    )
    def test_the_first_signal_has_its_grace_where_something_else_has_begun_the_end(
        self, before: PodSeen | StdoutBroken, grace: int
    ) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), before)
        run.carry()
        run.feed(TERM)
        run.carry()
        assert run.keeper.own_ends == [b"E\x0f" + grace.to_bytes(4, "little")]
        assert run.keeper.controls[1:] == [END_BY_TERM]

        run.feed(TERM)
        run.carry()
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
        run.feed(PodSeen(pods.HEALTHY), before, HUP)
        run.carry()
        if takes_over and before == TERM:
            run.is_killed()
            run.reconnect()

        controls = run.keeper.own_ends + run.keeper.controls[1:]
        assert controls == [b"E\x0f" + grace.to_bytes(4, "little"), CONTINUE]

    def test_a_signal_after_such_a_hup_is_given_once_though_another_process_takes_over(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING_IN_30_S), HUP, USR1)
        run.carry()
        run.is_killed()
        run.until_dialled()
        run.connect()

        assert run.keeper.controls[1:] == [CONTINUE, b"K\x0a"]

    def test_a_signal_after_a_hup_is_the_first(self) -> None:
        run = HeldRun().begin()
        run.feed(HUP, TERM)
        run.carry()
        assert run.keeper.controls[1:] == [b"E\x01" + (3000).to_bytes(4, "little"), END_BY_TERM]

        run.feed(TERM)
        run.carry()
        assert run.keeper.controls[3:] == [KILL_NOW]

    def test_a_signal_that_comes_twice_hurries_though_a_hup_came_in_between(self) -> None:
        run = HeldRun().begin()
        run.feed(INT, HUP, INT)
        run.carry()

        assert run.keeper.controls[1:] == [b"E\x02" + (3000).to_bytes(4, "little"), CONTINUE, KILL_NOW]

    def test_a_stdin_that_breaks_while_it_is_ended_changes_nothing(self) -> None:
        run = HeldRun(has_stdin=True).begin()
        run.feed(TERM, StdinBroken("input/output error"))
        run.carry()

        assert run.keeper.controls[1:] == [END_BY_TERM]

    def test_a_lost_stdout_ends_it(self) -> None:
        run = HeldRun().begin()
        run.feed(StdoutBroken())
        run.carry()
        assert run.keeper.own_ends == [END_BY_TERM]

        run.after(5.0)

        assert run.finish == Finish(141)

    def test_a_stdout_that_cannot_be_written_ends_it_with_a_code_of_ours(self) -> None:
        run = HeldRun().begin()
        run.feed(StdoutBroken("no space left on device"))
        run.carry()
        run.keeper.ends(143, by=END)
        run.carry()
        run.after(1.0)

        line = "the output of pod w can't be written: no space left on device; the command ended with 143"
        assert run.finish == Finish(ExitCode.UNKNOWN_END, line)

    def test_a_stdout_that_is_lost_to_the_same_signal_does_not_hurry(self) -> None:
        run = HeldRun().begin()
        run.feed(INT, StdoutBroken())
        run.carry()

        assert run.keeper.controls[1:] == [b"E\x02" + (3000).to_bytes(4, "little")]

    def test_one_that_never_reports_is_left_after_its_grace(self) -> None:
        run = HeldRun().begin()
        run.feed(TERM)
        run.carry()

        run.after(4.4)
        assert run.finish is None

        run.after(0.2)
        assert run.finish == Finish(143)


class TestOutputThatIsNotRead:
    """Too much of it waits for slow readers."""

    def test_makes_no_silence(self) -> None:
        run = HeldRun().begin()
        run.feed(Listening(listening=False))

        run.after(300.0)

        assert run.session.state is State.RUNNING
        assert (run.count(LookAtPod), run.count(Dial)) == (0, 1)

    def test_keeps_the_keeper_in_the_knowledge_that_somebody_is_there(self) -> None:
        run = HeldRun().begin()
        run.carry()
        run.feed(Listening(listening=False))
        before = run.count(Send)

        run.after(100.0)

        assert run.count(Send) - before == 4

    def test_counts_as_silence_again_once_it_is_read(self) -> None:
        run = HeldRun().begin()
        run.feed(Listening(listening=False))
        run.after(100.0)
        run.feed(Listening(listening=True))
        run.after(13.0)
        assert run.count(HangUp) == 0

        run.after(2.0)

        assert run.session.state is State.DETACHED

    def test_says_nothing_of_a_connection_that_is_lost(self) -> None:
        run = HeldRun().begin()
        run.feed(Listening(listening=False))
        run.cut()
        run.feed(Listening(listening=True))
        run.until_dialled()
        run.connect()
        run.after(15.0)

        assert run.session.state is State.DETACHED


class TestALostConnection:
    def test_is_dialled_again(self) -> None:
        run = HeldRun().begin()
        run.cut()

        assert run.session.state is State.DETACHED
        assert any(isinstance(action, Dial) for action in run.after(0.25))

    def test_nothing_is_lost_and_nothing_comes_twice(self) -> None:
        run = HeldRun(has_stdin=True).begin()
        run.keeper.writes(b"one ")
        run.feed(StdinRead(b"first "))
        run.carry()
        run.cut()
        run.keeper.writes(b"two ")
        run.feed(StdinRead(b"second"))
        run.reconnect()
        run.keeper.ends(0)
        run.carry()
        run.after(1.0)

        assert run.written(1) == b"one two "
        assert run.keeper.stdin == b"first second"
        assert run.keeper.starts == 1
        assert run.finish == Finish(0)

    def test_signals_wait_for_the_next(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.feed(USR1)
        run.reconnect()

        assert run.keeper.controls[1:] == [b"K\x0a"]

    def test_an_order_to_end_waits_for_the_next_but_not_for_long(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.feed(TERM)
        run.after(5.0)

        assert run.finish == Finish(143, "pod w is out of reach; its command ends there within 180 s")

    def test_an_order_to_end_is_given_when_it_is_back(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.feed(TERM)
        run.reconnect()
        assert run.session.state is State.TERMINATING

        run.keeper.ends(15, signal=True)
        run.carry()
        run.after(1.0)

        assert run.finish == Finish(143)

    def test_before_the_command_was_started_it_is_started_then_once(self) -> None:
        run = HeldRun()
        run.until_dialled()
        run.connect(breaks_after=1)
        run.until_dialled()
        run.connect()

        assert run.session.state is State.RUNNING
        assert run.keeper.starts == 1

    def test_silence_is_a_lost_connection(self) -> None:
        run = HeldRun().begin()
        run.after(14.1)

        assert run.session.state is State.DETACHED
        assert run.count(HangUp) == 1

    def test_a_status_without_an_end_is_a_lost_connection(self) -> None:
        run = HeldRun().begin()
        run.feed(SUCCESS)

        assert run.session.state is State.DETACHED

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            pytest.param(SUCCESS, "the server reported success before the command's end", id="success"),
            pytest.param(exit_status(137), "the exec's process ended with code 137, signal 9", id="killed"),
            pytest.param(exit_status(1), "the exec's process ended with code 1", id="a code"),
            pytest.param(failure_status("the node went away"), "the node went away", id="a failure"),
            pytest.param(
                Received(b'\x03{"status":"Failure","reason":"Expired"}'),
                "Expired",
                id="a reason without a message",
            ),
            pytest.param(Received(b'\x03{"status":"Failure"}'), "no reason given", id="no reason"),
        ],
    )
    def test_is_described_by_its_status(self, status: Received, words: str) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.keeper.disconnect()
        run.is_open = False

        assert Note(f"the connection is lost: {words}") in run.feed(status)

        run.feed(ApiSilent("refused"), NotOpened(ConnectionLost("refused")))
        run.after(180.0)
        assert run.finish is not None
        assert run.finish.line.startswith(f"the connection to pod w was lost ({words}) and did not come back")

    def test_before_the_keeper_answered_is_described_as_that(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.until_dialled()
        run.connect(breaks_after=0)

        line = "the keeper was not reached: the connection to pod w ended before its keeper answered: reset"
        assert Note(line) in run.actions

    def test_where_there_is_no_lease_it_is_the_end(self) -> None:
        run = HeldRun(patience=Patience(lease=0)).begin()
        run.cut()
        run.feed(PodSeen(pods.HEALTHY))

        assert run.finish == Finish(ExitCode.CONNECTION_LOST, "the connection to pod w was lost: reset")

    def test_where_the_session_cannot_be_found_again_it_is_the_end(self) -> None:
        run = HeldRun()
        run.keeper.can_attach = False
        run.begin()
        run.cut()
        run.after(3.0)

        assert run.finish is not None
        assert run.finish.code == ExitCode.CONNECTION_LOST
        assert run.count(Dial) == 1

    def test_the_api_server_is_waited_for_as_long_as_the_lease(self) -> None:
        run = HeldRun().begin()
        run.cut()
        for _ in range(60):
            run.feed(NotOpened(ConnectionLost("refused")), ApiSilent("refused"))
            run.after(2.9)
        assert run.finish is None

        run.after(10.0)

        line = (
            "the connection to pod w was lost (reset) and did not come back within the lease of 180 s, after "
            "which the command is ended there; refused"
        )
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    def test_an_api_server_that_has_too_much_to_do_says_when_to_come_back(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.until_dialled()
        run.feed(NotOpened(BUSY), ApiAnswers())

        assert not any(isinstance(action, Dial) for action in run.after(7.0))
        assert any(isinstance(action, Dial) for action in run.after(1.0))
        run.after(30.0)
        assert run.finish is None

    def test_an_api_server_that_asks_for_more_time_than_the_lease_has_is_asked_again_within_it(self) -> None:
        run = HeldRun(patience=Patience(lease=10)).begin()
        run.cut()
        run.until_dialled()
        run.feed(NotOpened(Overloaded("y", Failure(503, "", "", 30.0, is_status=True))))

        assert any(isinstance(action, Dial) for action in run.after(3.0))

    def test_a_node_that_refuses_while_the_api_server_answers_has_less_time(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.until_dialled()
        run.feed(ApiAnswers(), NotOpened(DIALING))
        run.after(19.0)
        assert run.finish is None

        run.after(1.1)

        line = "node node-1 of pod w has not answered for 20 s, while the API server does; x"
        assert run.finish == Finish(ExitCode.NODE_LOST, line)

    def test_a_node_that_the_cluster_does_not_hear_has_as_much(self) -> None:
        """After an outage the API server knows of the kubelets only what they said before it."""
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.feed(ApiAnswers(), PodSeen(pods.NODE_LOST))
        run.until_dialled()
        assert run.finish is None

        run.connect()

        assert run.session.state is State.RUNNING
        run.feed(PodSeen(pods.HEALTHY))
        assert run.finish is None

    @pytest.mark.parametrize(
        "status",
        [
            pytest.param(SUCCESS, id="on its way down"),
            pytest.param(None, id="away"),
            pytest.param(failure_status("unable to upgrade connection: rpc error: code = Unavailable"), id="v5"),
            pytest.param(
                failure_status("OCI runtime exec failed: resource temporarily unavailable"), id="no pids left"
            ),
            pytest.param(exit_status(137), id="a bootstrap that is killed"),
            pytest.param(no_keeper(), id="a shell, and no keeper's file any more"),
        ],
    )
    def test_a_runtime_that_is_away_has_the_lease(self, status: Received | None) -> None:
        """The node answers, and what runs there goes on."""
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        while run.now < 100.0:
            run.until_dialled()
            run.feed(ApiAnswers(), *([Opened(V4), status] if status else [NotOpened(UNAVAILABLE)]))
        assert run.finish is None

        while run.finish is None and run.now < 200.0:
            run.until_dialled()
            run.feed(ApiAnswers(), NotOpened(UNAVAILABLE))

        assert run.finish is not None
        assert run.finish.code == ExitCode.CONNECTION_LOST

    @pytest.mark.parametrize("text", ["error dialing backend: refused", "error sending request: i/o timeout"])
    def test_an_api_server_that_tells_on_v5_of_a_lost_node_is_no_node(self, text: str) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        while run.finish is None:
            run.until_dialled()
            run.feed(ApiAnswers(), Opened(V5), failure_status(text))

        assert (run.finish.code, run.now < 30) == (ExitCode.NODE_LOST, True)

    def test_a_node_is_not_given_up_while_an_open_way_to_it_waits_for_its_word(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        while run.now < 19.0:
            run.until_dialled()
            run.after(min(1.0, max(0.0, 19.5 - run.now)), ApiAnswers())
            if run.now < 19.0:
                run.feed(NotOpened(DIALING))
        run.feed(Opened(V4))
        run.after(3.0)
        assert run.finish is None

        run.feed(NotOpened(DIALING))
        assert run.finish is not None
        assert run.finish.code == ExitCode.NODE_LOST

    def test_time_in_which_the_agent_was_stopped_counts_against_no_node(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.until_dialled()
        run.feed(ApiAnswers(), NotOpened(DIALING))
        run.now += 60
        run.feed(Tick())
        assert run.finish is None

        run.connect()
        assert run.session.state is State.RUNNING

    def test_a_node_that_says_nothing_has_no_more(self) -> None:
        run = HeldRun().begin()
        run.after(6.0, PodSeen(pods.HEALTHY))
        run.after(8.1, PodSeen(pods.HEALTHY))
        assert run.session.state is State.DETACHED

        run.until_dialled()
        run.after(1.0, ApiAnswers())
        run.after(9.0, NotOpened(TimedOut("no answer")))

        assert run.finish is not None
        assert run.finish.code == ExitCode.NODE_LOST

    def test_an_api_server_that_was_frozen_gets_a_chance_when_it_is_back(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.after(14.1)
        for _ in range(4):
            run.until_dialled()
            run.after(10.0, NotOpened(TimedOut("no answer")), ApiSilent("no answer"))
        run.feed(ApiAnswers(), PodSeen(pods.HEALTHY))
        assert run.finish is None

        run.until_dialled()
        run.connect()

        assert run.session.state is State.RUNNING

    def test_a_pod_that_is_gone_is_the_end_at_once(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.feed(PodGone())

        assert run.finish == Finish(ExitCode.POD_DELETED, "pod w was deleted")

    def test_a_container_that_was_restarted_is_the_end_at_once(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.feed(PodSeen(pods.RESTARTED))

        assert run.finish is not None
        assert run.finish.code == ExitCode.CONTAINER_DIED

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

        assert run.finish is not None
        assert run.finish.code == ExitCode.UNKNOWN_END

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
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.finds_nobody(container_start=start)
        run.feed(PodSeen(pods.HEALTHY))
        run.after(2.0, PodSeen(pods.RESTARTED))

        assert run.finish is not None
        assert run.finish.code == ExitCode.CONTAINER_DIED
        assert run.finish.line == "the container of pod w was restarted (OOMKilled, code 137)"

    def test_where_the_container_cannot_be_told_from_the_next_the_kubelet_has_longer(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.finds_nobody(container_start=0)
        run.after(9.9, PodSeen(pods.HEALTHY))
        assert run.finish is None
        run.after(0.2)

        assert run.finish is not None
        assert run.finish.code == ExitCode.UNKNOWN_END

    def test_what_became_of_a_keeper_that_is_gone_the_pod_may_tell(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.finds_nobody()
        run.feed(PodSeen(pods.RESTARTED))

        assert run.finish is not None
        assert run.finish.code == ExitCode.CONTAINER_DIED

    def test_a_container_that_was_killed_and_is_not_found_is_the_end_before_the_pod_says_why(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.feed(exit_status(137))
        run.until_dialled()
        run.feed(PodSeen(pods.HEALTHY), NotOpened(NOT_FOUND))
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
        run.until_dialled()
        run.feed(NotOpened(NOT_FOUND))
        run.after(2.0)
        assert run.finish is None

        run.feed(PodSeen(pod))

        assert run.finish is not None
        assert run.finish.code == code

    def test_a_container_that_is_not_found_is_the_end_where_the_pod_cannot_be_read(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), exit_status(137))
        run.until_dialled()
        run.feed(NotOpened(NOT_FOUND))
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

        assert run.finish is not None
        assert run.finish.code == ExitCode.CONTAINER_DIED

    def test_where_nobody_may_look_the_runtimes_word_has_to_do(self) -> None:
        run = HeldRun().begin()
        run.is_open = False
        run.keeper.disconnect()
        run.feed(exit_status(137))
        run.finds_nobody()
        run.feed(PodHidden("may not"))
        run.after(3.0)

        assert run.finish is not None
        assert run.finish.code == 137


class TestASignalWithoutAConnection:
    def test_is_over_with_the_container_and_does_not_wait_for_its_grace(self) -> None:
        run = HeldRun(grace=Grace(60.0)).begin()
        run.feed(PodSeen(pods.HEALTHY), TERM)
        run.carry()
        run.feed(PodSeen(pods.DELETING), exit_status(137))
        run.until_dialled()
        run.feed(NotOpened(NOT_FOUND))

        assert run.finish == Finish(143, "pod w is being deleted")

    def test_is_over_with_the_patience_for_the_node(self) -> None:
        run = HeldRun(grace=Grace(60.0)).begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.until_dialled()
        run.feed(ApiAnswers(), NotOpened(DIALING), TERM, PodSeen(pods.DELETING))
        run.after(25.0)

        line = "pod w is out of reach; its command ends there within 180 s"
        assert run.finish == Finish(143, line)

    def test_names_a_keeper_that_is_gone(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.finds_nobody()
        run.feed(TERM)
        run.after(0.6)

        line = "the keeper of the command in pod w is gone: something has killed it, or its lease was over"
        assert run.finish == Finish(143, line)


class TestACommandThatSomebodyEnded:
    """Its 0 is no success: a program that is told to end may well end with it."""

    @pytest.mark.parametrize("code", [0, 143])
    def test_for_its_lease_was_over_is_lost(self, code: int) -> None:
        run = HeldRun().begin()
        run.reconnect()
        run.keeper.ends(code, by=LEASE)
        run.carry()
        run.after(1.0)

        line = (
            "the command in pod w was ended there: nobody was connected to it for its lease of 180 s; "
            f"the command ended with {code}"
        )
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    def test_for_its_lease_was_over_is_lost_though_a_signal_came_then(self) -> None:
        run = HeldRun().begin()
        run.cut()
        run.feed(TERM)
        run.until_dialled()
        run.connect()
        run.keeper.ends(0, by=LEASE)
        run.carry()
        run.after(1.0)

        assert run.finish is not None
        assert run.finish.code == ExitCode.CONNECTION_LOST

    @pytest.mark.parametrize(("code", "ours"), [(0, ExitCode.UNKNOWN_END), (143, 143)])
    def test_by_a_signal_to_its_keeper_has_its_own_code_unless_that_is_0(self, code: int, ours: int) -> None:
        run = HeldRun().begin()
        run.keeper.ends(code, by=SIGNAL)
        run.carry()
        run.after(1.0)

        line = f"something in pod w told the command's keeper to end; the command ended with {code}"
        assert run.finish == Finish(ours, line)

    def test_for_a_reason_that_was_lost_with_a_switchboard_is_not_known(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING))
        run.carry()
        run.is_killed()
        run.until_dialled()
        run.connect()
        run.keeper.ends(0, by=END)
        run.carry()
        run.after(1.0)

        line = (
            "the command in pod w was ended by a switchboard that was killed before it could say why; "
            "the command ended with 0"
        )
        assert run.finish == Finish(ExitCode.UNKNOWN_END, line)

    def test_as_a_signal_to_us_asked_has_its_own_code(self) -> None:
        run = HeldRun().begin()
        run.feed(TERM)
        run.carry()
        run.keeper.ends(0, by=END)
        run.carry()
        run.after(1.0)

        assert run.finish == Finish(0)

    def test_by_a_later_launcher_is_told(self) -> None:
        run = HeldRun().begin()
        run.keeper.is_fenced()
        run.carry()

        line = "the command in pod w was ended by a later launcher of its job (MPIRT_FENCE)"
        assert run.finish == Finish(ExitCode.CONNECTION_LOST, line)

    def test_by_a_later_launcher_after_its_end_has_its_own_code(self) -> None:
        run = HeldRun().begin()
        run.keeper.ends(7)
        run.keeper.is_fenced()
        run.carry()
        run.after(1.0)

        assert run.finish == Finish(7)


class TestThePod:
    @pytest.mark.parametrize("pod", [pods.REPLACED, pods.RESTARTED], ids=["another pod", "another container"])
    def test_that_is_newer_than_the_command_is_its_own_whatever_was_told_before(self, pod: Pod) -> None:
        """The watch was dead when the command was started."""
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY))
        run.cut()
        run.feed(PodSeen(pod, is_first=True))
        run.reconnect()
        assert run.session.state is State.RUNNING

        run.cut()
        run.feed(PodSeen(pod))

        assert run.finish is None

    def test_that_was_watched_before_the_command_is_followed_anew(self) -> None:
        """What was told then may be older than the command."""
        run = HeldRun()
        run.until_dialled()
        run.feed(NotOpened(NOT_FOUND))
        run.until_dialled()
        assert run.count(WatchPod) == 1
        run.connect()

        assert WatchPod(anew=False) in run.after(0.0)

    def test_a_pod_that_is_deleted_has_its_command_ended_first(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING))
        run.carry()
        assert run.keeper.own_ends == [END_BY_TERM]

        run.keeper.ends(0)
        run.carry()
        run.after(1.0)

        line = "pod w is being deleted; the command ended with 0"
        assert run.finish == Finish(ExitCode.POD_DELETED, line)

    def test_a_deleted_pods_command_has_the_pods_grace_less_the_time_for_its_report(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING_IN_30_S))
        run.carry()
        assert run.keeper.own_ends == [b"E\x0f" + (27_000).to_bytes(4, "little")]

        for _ in range(13):
            run.after(2.0)
            run.carry()
        assert run.finish is None

        run.keeper.writes(b"saved")
        run.keeper.ends(0)
        run.carry()
        run.after(1.0)

        assert run.written(1) == b"saved"
        line = "pod w is being deleted; the command ended with 0"
        assert run.finish == Finish(ExitCode.POD_DELETED, line)

    def test_a_grace_that_was_set_is_the_most_that_a_deleted_pods_command_gets(self) -> None:
        run = HeldRun(grace=Grace(1.0)).begin()
        run.feed(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING_IN_30_S))
        run.carry()

        assert run.keeper.own_ends == [b"E\x0f" + (1000).to_bytes(4, "little")]

    def test_a_deleted_pod_whose_connection_ends_is_the_end(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), PodSeen(pods.DELETING))
        run.carry()
        run.cut()

        assert run.finish == Finish(ExitCode.POD_DELETED, "pod w is being deleted")

    def test_a_restarted_container_is_no_evidence_against_a_keeper_that_answers(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.HEALTHY), PodSeen(pods.RESTARTED))

        assert run.finish is None

    def test_the_pod_is_looked_at_when_signs_of_life_are_missing(self) -> None:
        run = HeldRun().begin()
        run.after(1.0)

        assert LookAtPod(anew=True) in run.after(5.0)


class TestAmongMany:
    def test_a_keeper_is_asked_as_seldom_as_it_is_told(self) -> None:
        run = HeldRun(ask_every=lambda: 7.0).begin()
        sent = run.count(Send)
        run.after(6.9)
        assert run.count(Send) == sent

        run.after(0.2)
        assert run.count(Send) == sent + 1

    def test_a_node_that_is_silent_is_given_up_no_later(self) -> None:
        run = HeldRun(ask_every=lambda: 7.0).begin()
        run.after(9.1, ApiAnswers())
        run.after(5.0)
        assert run.session.state is State.DETACHED

        run.until_dialled()
        run.feed(NotOpened(DIALING))
        run.after(20.1 - run.now)

        assert run.finish is not None
        assert run.finish.code == ExitCode.NODE_LOST
