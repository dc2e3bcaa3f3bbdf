"""A command whose process was killed, and another one that goes on with it, sentence by sentence."""

from __future__ import annotations

from mpirt.errors import ExitCode
from mpirt.rsh.session.events import Finish, HangUp, PodSeen, Tick, Written
from mpirt.rsh.session.machine import State
from mpirt.rsh.session.session import Session
from mpirt.rsh.session.task import Record, Resumption
from tests.unit.rsh import pods
from tests.unit.rsh.keepers import HeldRun
from tests.unit.rsh.sessions import FIRST, TERM, USR1

RECORD = Record("w", FIRST, "", 4000)


class TestTheRecord:
    def test_the_record_is_kept_before_the_command_may_be_started(self) -> None:
        run = HeldRun()
        run.keeps = False
        run.feed(Tick())
        run.connect()

        assert run.records == [RECORD]
        assert run.keeper.starts == 0
        assert run.session.phase.state is State.HELLO

    def test_the_record_is_taken_back_when_the_attempt_fails_before_it_was_kept(self) -> None:
        run = HeldRun()
        run.keeps = False
        run.feed(Tick())
        run.connect()
        run.cut()

        assert run.records == [RECORD, None]

    def test_the_record_has_the_outcome_before_the_keeper_hears_that_it_is_done(self) -> None:
        run = HeldRun().begin()
        run.keeps = False
        run.keeper.writes(b"last")
        run.keeper.ends(7)
        run.carry()

        assert run.records[-1] == Record("w", FIRST, "", 4000, code=7)
        assert not run.keeper.is_done
        assert run.finish is None

    def test_the_record_has_the_pods_reason_where_that_ended_the_command(self) -> None:
        run = HeldRun().begin()
        run.feed(PodSeen(pods.DELETING))
        run.keeper.ends(143)
        run.carry()

        record = run.records[-1]
        assert record is not None
        assert (record.code, record.line) == (
            ExitCode.POD_DELETED,
            "pod w is being deleted; the command ended with 143",
        )

    def test_a_record_that_is_not_kept_does_not_hold_up_an_end(self) -> None:
        run = HeldRun().begin()
        run.keeps = False
        run.keeper.ends(0)
        run.carry()
        run.feed(TERM)
        run.after(10.0)

        assert run.finish == Finish(0)
        assert run.keeper.is_done is False


class TestGoingOn:
    def test_the_next_process_goes_on_with_a_command_that_runs(self) -> None:
        run = HeldRun(has_stdin=True).begin()
        run.keeper.writes(b"first ", b"error")
        run.carry()
        run.is_killed()
        run.keeper.writes(b"second")
        run.reconnect()

        assert run.session.phase.state is State.RUNNING
        assert (run.written(1), run.written(2)) == (b"first second", b"error")
        assert run.keeper.starts == 1

    def test_the_next_process_starts_a_command_whose_keeper_was_not_told_to(self) -> None:
        run = HeldRun()
        run.keeps = False
        run.feed(Tick())
        run.connect()
        run.keeps = True
        run.is_killed()
        run.reconnect()

        assert run.keeper.starts == 1
        assert run.session.phase.state is State.RUNNING

    def test_the_next_process_goes_on_with_the_end_of_a_command_that_was_told_to_end(self) -> None:
        run = HeldRun().begin()
        run.meets(TERM)
        run.is_killed()
        run.reconnect()
        run.ends(15, signal=True)

        assert run.finish == Finish(143)
        assert len(run.keeper.controls) == 2

    def test_the_next_process_gives_a_signal_a_number_that_the_other_has_not_used(
        self,
    ) -> None:
        run = HeldRun().begin()
        run.meets(PodSeen(pods.DELETING))
        assert len(run.keeper.own_ends) == 1
        run.is_killed()
        run.feed(USR1)
        run.reconnect()

        assert run.session.phase.state is State.RUNNING
        assert run.keeper.controls[1:] == [b"K\x0a"]

    def test_the_next_process_bears_more_signals_than_an_agent_remembers(self) -> None:
        run = HeldRun().begin()
        run.meets(*[USR1] * 70)
        del run.signals[63:69]
        run.is_killed()
        run.reconnect()

        assert run.session.phase.state is State.RUNNING
        assert len(run.keeper.controls) == 71

    def test_the_next_process_ends_at_once_where_the_outcome_was_known(self) -> None:
        run = HeldRun().begin()
        run.keeper.ends(3)
        run.carry()
        run.is_killed()
        run.feed(Tick())

        assert run.finish == Finish(3)

    def test_the_next_process_ends_with_a_cause_where_the_keeper_is_gone(self) -> None:
        run = HeldRun().begin()
        run.is_killed()
        run.finds_nobody()
        run.feed(PodSeen(pods.HEALTHY))
        run.after(11.0)

        assert run.code == ExitCode.UNKNOWN_END

    def test_the_next_process_waits_for_a_keeper_no_longer_than_its_lease(self) -> None:
        run = HeldRun().begin()
        run.is_killed()
        run.after(200.0)

        assert run.code == ExitCode.CONNECTION_LOST

    def test_the_next_process_asks_for_less_output_again_the_more_of_it_has_come(self) -> None:
        run = HeldRun().begin()
        run.keeper.writes(b"x" * 5000)
        run.carry()
        run.is_killed()
        run.reconnect()
        run.feed(Written(5000, 0))
        run.ends(0)

        assert run.written(1) == b"x" * 5000
        assert run.finish == Finish(0)

    def test_the_next_process_is_no_more_than_an_attempt_where_nothing_was_started(self) -> None:
        run = HeldRun()
        run.feed(Tick())
        run.is_killed()
        run.feed(Tick())
        run.connect()

        assert run.session.phase.state is State.RUNNING


class TestWhatIsOver:
    def test_an_outcome_is_told_whatever_happens_next(self) -> None:
        run = HeldRun()
        ended = Resumption(Record("w", FIRST, "", code=5, line="because"), 1)
        run.session = Session(run.task, now=0.0, jitter=lambda: 0.0, resumption=ended)

        assert (run.session.wake, run.session.phase.stdin_room, run.session.phase.stdin_taken) == (0.0, 0, 0)
        assert run.feed(Tick()) == [HangUp(), Finish(5, "because")]
