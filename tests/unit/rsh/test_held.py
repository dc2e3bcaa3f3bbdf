"""A command that a keeper holds, sentence by sentence: on a connection that lasts."""

from __future__ import annotations

from mpirt.errors import ExitCode
from mpirt.rsh.session.events import (
    ApiAnswers,
    Dial,
    Finish,
    HangUp,
    Listening,
    LookAtPod,
    NotOpened,
    Say,
    Send,
    StdinRead,
    WatchPod,
    Written,
)
from mpirt.rsh.session.machine import State
from tests.unit.rsh.keepers import HeldRun
from tests.unit.rsh.sessions import DIALING, TERM, exit_status


class TestOneConnection:
    def test_the_command_is_started_by_its_keeper(self) -> None:
        run = HeldRun().begin()

        assert run.session.phase.state is State.RUNNING
        assert run.keeper.starts == 1

    def test_its_output_and_its_code_are_ours(self) -> None:
        run = HeldRun().begin()
        run.keeper.writes(b"out", b"err")
        run.ends(7)

        assert (run.written(1), run.written(2)) == (b"out", b"err")
        assert run.finish == Finish(7)
        assert run.keeper.is_done

    def test_a_command_that_a_signal_ends_has_its_number(self) -> None:
        run = HeldRun().begin()
        run.ends(9, signal=True)

        assert run.finish == Finish(137)

    def test_the_end_of_the_connection_is_waited_for_for_a_moment_only(self) -> None:
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
        assert run.session.phase.stdin_room == 1048576

        for _ in range(16):
            run.feed(StdinRead(b"x" * 65536))
        assert run.session.phase.stdin_room == 0

        run.carry()
        assert run.session.phase.stdin_room == 1048576
        assert run.keeper.stdin == b"x" * 1048576

    def test_the_end_of_stdin_is_told(self) -> None:
        run = HeldRun(has_stdin=True).begin()
        run.meets(StdinRead(b"x"), StdinRead(b""))

        assert run.keeper.stdin_ended
        assert run.session.phase.stdin_room == 0

    def test_more_output_comes_when_what_came_was_written(self) -> None:
        run = HeldRun().begin()
        run.keeper.writes(b"x" * 3 * 1024 * 1024)
        run.carry()
        assert len(run.written(1)) == 1024 * 1024

        run.meets(Written(1024 * 1024, 0))

        assert len(run.written(1)) == 2 * 1024 * 1024

    def test_an_idle_session_asks_its_keeper_for_a_sign_of_life(self) -> None:
        run = HeldRun().begin()
        for _ in range(30):
            run.after(2.0)
            run.carry()

        assert run.session.phase.state is State.RUNNING

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

        assert run.code == ExitCode.PEER


class TestOutputThatIsNotRead:
    """Too much of it waits for slow readers."""

    def test_unread_output_makes_no_silence(self) -> None:
        run = HeldRun().begin()
        run.feed(Listening(listening=False))

        run.after(300.0)

        assert run.session.phase.state is State.RUNNING
        assert (run.count(LookAtPod), run.count(Dial)) == (0, 1)

    def test_unread_output_does_not_stop_the_signs_of_life_to_the_keeper(self) -> None:
        run = HeldRun().begin()
        run.carry()
        run.feed(Listening(listening=False))
        before = run.count(Send)

        run.after(100.0)

        assert run.count(Send) - before == 4

    def test_unread_output_counts_as_silence_again_once_it_is_read(self) -> None:
        run = HeldRun().begin()
        run.feed(Listening(listening=False))
        run.after(100.0)
        run.feed(Listening(listening=True))
        run.after(13.0)
        assert run.count(HangUp) == 0

        run.after(2.0)

        assert run.session.phase.state is State.DETACHED

    def test_unread_output_says_nothing_of_a_connection_that_is_lost(self) -> None:
        run = HeldRun().begin()
        run.feed(Listening(listening=False))
        run.cut()
        run.feed(Listening(listening=True))
        run.until_dialled()
        run.connect()
        run.after(15.0)

        assert run.session.phase.state is State.DETACHED


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
        assert run.session.phase.state is State.DETACHED

        run.until_dialled(NotOpened(DIALING))
        run.after(20.1 - run.now)

        assert run.code == ExitCode.NODE_LOST
