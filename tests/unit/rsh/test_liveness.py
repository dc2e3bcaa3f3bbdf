"""When signs of life are asked for, and what counts as silence."""

from __future__ import annotations

from mpirt.rsh.pod.liveness import DEFAULT_PACE, Liveness, Pace


class TestBeats:
    def test_beats_are_due_after_four_seconds_of_silence(self) -> None:
        live = Liveness(0.0)

        assert live.wake == 4.0
        assert [live.tick(now) for now in (3.9, 4.0, 4.1, 8.0)] == [False, True, False, True]

    def test_beats_are_not_due_while_something_comes(self) -> None:
        live = Liveness(0.0)
        live.heard(3.0)

        assert not live.tick(4.0)
        assert live.wake == 7.0

    def test_beats_are_due_every_ten_seconds_however_much_comes(self) -> None:
        live = Liveness(0.0)
        for now in (2.0, 6.0, 9.5):
            live.heard(now)
            assert not live.tick(now)

        assert live.wake == 10.0
        assert live.tick(10.0)
        assert not live.tick(10.1)

    def test_beats_are_as_many_as_the_keeper_needs_while_nothing_is_read(self) -> None:
        live = Liveness(0.0)
        live.listen(1.0, listening=False)

        due = [second for second in range(1, 61) if live.tick(float(second))]

        assert due == [25, 50]
        assert live.wake == 65.0


class TestSilence:
    def test_silence_grows_from_the_last_sign(self) -> None:
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
    def test_a_pace_is_slower_where_one_process_asks_for_many(self) -> None:
        slow = DEFAULT_PACE.slower(7.0)

        assert slow == Pace(7.0, DEFAULT_PACE.dead_after)
        assert (DEFAULT_PACE.overdue_after, slow.overdue_after) == (5.0, 8.0)
        assert DEFAULT_PACE.slower(1.0) == DEFAULT_PACE

    def test_a_pace_that_the_user_has_chosen_stays(self) -> None:
        assert Pace(2.0, 6.0).slower(7.0) == Pace(2.0, 6.0)

    def test_a_pace_may_change(self) -> None:
        live = Liveness(0.0)
        live.change_pace(Pace(7.0, 14.0))

        assert not live.tick(4.0)
        assert live.tick(7.0)
