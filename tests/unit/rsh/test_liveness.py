"""When signs of life are asked for, and what counts as silence."""

from __future__ import annotations

from mpirt.rsh.pod.liveness import DEFAULT_PACE, Due, Liveness, Pace

NOTHING = Due()


class TestQuestions:
    def test_a_ping_is_due_after_four_seconds_of_silence(self) -> None:
        live = Liveness(0.0)

        assert live.wake == 4.0
        assert live.tick(3.9) == NOTHING
        assert live.tick(4.0) == Due(ping=True)
        assert live.tick(4.1) == NOTHING
        assert live.tick(8.0) == Due(ping=True)

    def test_none_is_due_while_something_comes(self) -> None:
        live = Liveness(0.0)
        live.heard(3.0)

        assert live.tick(4.0) == NOTHING
        assert live.wake == 7.0

    def test_a_beat_is_due_instead_where_pings_prove_nothing(self) -> None:
        live = Liveness(0.0)
        live.started(0.0, beats=True)

        assert live.tick(4.0) == Due(beat=True)

    def test_data_is_due_every_ten_seconds_once_the_command_runs(self) -> None:
        live = Liveness(0.0)
        assert [live.tick(now) for now in (5.0, 10.0)] == [Due(ping=True), Due(ping=True)]
        live.started(10.0, beats=False)
        for now in (12.0, 16.0, 19.5):
            live.heard(now)
            live.tick(now)

        assert live.wake == 20.0
        assert live.tick(20.0) == Due(keep_alive=True)
        assert live.tick(20.1) == NOTHING

    def test_a_beat_is_data_too(self) -> None:
        live = Liveness(0.0)
        live.started(0.0, beats=True)
        due = []
        for second in range(1, 25):
            due.append(live.tick(float(second)))
            live.heard(float(second)) if due[-1].beat else None

        assert all(not one.keep_alive for one in due)
        assert [number for number, one in enumerate(due, 1) if one.beat] == [4, 8, 12, 16, 20, 24]

    def test_nothing_is_asked_while_nobody_listens_and_the_watchdog_hears_just_enough(self) -> None:
        live = Liveness(0.0)
        live.started(0.0, beats=False)
        live.listen(1.0, listening=False)

        due = {second: live.tick(float(second)) for second in range(1, 61)}

        assert {second: one for second, one in due.items() if one != NOTHING} == {
            25: Due(keep_alive=True),
            50: Due(keep_alive=True),
        }
        assert live.wake == 65.0


class TestSilence:
    def test_it_grows_from_the_last_sign(self) -> None:
        live = Liveness(0.0)
        live.heard(2.0)

        assert live.silence(9.0) == 7.0

    def test_a_tick_is_due_when_it_has_lasted_long_enough(self) -> None:
        live = Liveness(0.0)
        for now in (4.0, 8.0, 12.0):
            live.tick(now)

        assert live.wake == 14.0
        live.tick(14.0)
        assert live.wake == 16.0

    def test_an_api_servers_pong_is_no_sign_where_beats_are_asked_for(self) -> None:
        live = Liveness(0.0)
        live.started(0.0, beats=True)

        assert not live.heard(5.0, pong=True)
        assert live.silence(5.0) == 5.0
        assert live.heard(6.0)
        assert live.silence(6.0) == 0.0

    def test_there_is_none_while_nobody_listens(self) -> None:
        live = Liveness(0.0)
        live.listen(3.0, listening=False)

        assert live.silence(100.0) == 0.0
        live.listen(100.0, listening=True)
        assert live.silence(101.0) == 1.0

    def test_time_in_which_this_process_did_not_run_is_not_counted(self) -> None:
        live = Liveness(0.0)
        live.tick(4.0)
        live.tick(1000.0)

        assert live.silence(1001.0) == 1.0


class TestThePace:
    def test_is_slower_where_one_process_asks_for_many(self) -> None:
        slow = DEFAULT_PACE.slower(7.0)

        assert slow == Pace(7.0, DEFAULT_PACE.dead_after)
        assert (DEFAULT_PACE.overdue_after, slow.overdue_after) == (5.0, 8.0)
        assert DEFAULT_PACE.slower(1.0) == DEFAULT_PACE

    def test_that_somebody_has_chosen_stays(self) -> None:
        assert Pace(2.0, 6.0).slower(7.0) == Pace(2.0, 6.0)

    def test_may_change(self) -> None:
        live = Liveness(0.0)
        live.change_pace(Pace(7.0, 14.0))

        assert live.tick(4.0) == NOTHING
        assert live.tick(7.0) == Due(ping=True)
