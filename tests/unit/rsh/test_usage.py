"""What a command's processes use: when a session asks its keeper, and what it knows afterwards."""

from __future__ import annotations

import pytest

from mpirt.rsh.protocol.keeperframes import Usage
from mpirt.rsh.session.events import Listening, Signalled, Tick, UsageWanted
from mpirt.rsh.session.machine import State
from tests.unit.rsh.keepers import HeldRun
from tests.unit.rsh.sessions import Run

SOME = (1_500_000, 4096, 2)


def running(usage: tuple[int, int, int] | None = SOME) -> HeldRun:
    run = HeldRun().begin()
    run.keeper.usage = usage
    return run


def look(run: HeldRun) -> None:
    """Somebody looks, and what follows is said."""
    run.meets(UsageWanted())


class TestAHeldCommand:
    def test_a_command_that_nobody_looks_at_is_not_asked(self) -> None:
        run = running()
        run.after(3600.0)

        assert (run.keeper.usage_asked, run.session.phase.usage) == (0, None)

    def test_a_command_has_what_the_keeper_answers(self) -> None:
        run = running()
        run.feed(UsageWanted())
        assert run.session.phase.awaits_usage

        run.carry()

        assert run.session.phase.usage == Usage(1.5, 4096, 2)
        assert not run.session.phase.awaits_usage

    def test_a_command_has_the_moments_between_which_the_keeper_has_measured(self) -> None:
        run = running()
        run.feed(UsageWanted())
        asked = run.now
        run.after(0.25)

        run.carry()

        assert run.session.phase.usage_measured == (asked, run.now)

    def test_a_command_of_which_the_keeper_knows_nothing_has_none_and_awaits_none(self) -> None:
        run = running((0, 0, 0))
        look(run)

        assert (run.session.phase.usage, run.session.phase.awaits_usage) == (None, False)

    def test_a_command_is_asked_once_a_second_at_most(self) -> None:
        run = running()
        for _ in range(9):
            look(run)
            run.after(0.25)

        assert run.keeper.usage_asked == 3

    def test_a_command_whose_keeper_does_not_answer_keeps_what_it_has_and_is_asked_again(self) -> None:
        run = running()
        look(run)
        run.keeper.usage = None
        run.after(1.0)
        look(run)

        assert (run.session.phase.usage, run.session.phase.awaits_usage) == (Usage(1.5, 4096, 2), True)
        run.after(1.0)
        look(run)
        assert run.keeper.usage_asked == 3

    def test_a_command_that_is_being_ended_is_asked(self) -> None:
        run = running()
        run.feed(Signalled("TERM", 15))
        look(run)

        assert run.session.phase.state is State.TERMINATING
        assert run.session.phase.usage == Usage(1.5, 4096, 2)

    def test_a_command_that_has_ended_is_not_asked_and_awaits_nothing(self) -> None:
        run = running(None)
        look(run)
        run.keeper.ends(0)
        run.carry()
        assert run.session.phase.state is State.EXITED
        assert not run.session.phase.awaits_usage

        run.now += 1.0
        look(run)

        assert run.keeper.usage_asked == 1

    def test_a_command_whose_output_is_not_read_awaits_nothing_until_it_is(self) -> None:
        run = running(None)
        look(run)
        run.feed(Listening(listening=False))
        assert not run.session.phase.awaits_usage

        run.feed(Listening(listening=True))

        assert run.session.phase.awaits_usage


class TestALostConnection:
    @pytest.mark.parametrize("usage", [SOME, None], ids=["answered", "not answered"])
    def test_a_lost_connection_leaves_nothing_known_and_nothing_awaited(
        self, usage: tuple[int, int, int] | None
    ) -> None:
        run = running(usage)
        look(run)
        run.cut()

        assert run.session.phase.state is State.DETACHED
        assert (run.session.phase.usage, run.session.phase.awaits_usage) == (None, False)

    def test_a_lost_connection_is_not_asked_over(self) -> None:
        run = running()
        run.cut()
        run.feed(UsageWanted())

        assert not run.session.phase.awaits_usage

    def test_a_lost_connection_is_followed_by_one_that_is(self) -> None:
        run = running()
        look(run)
        run.reconnect()
        run.after(1.0)
        look(run)

        assert (run.session.phase.usage, run.keeper.usage_asked) == (Usage(1.5, 4096, 2), 2)


def test_a_command_that_is_being_dialled_has_no_usage() -> None:
    run = Run()
    run.feed(Tick(), UsageWanted())

    assert (run.session.phase.usage, run.session.phase.awaits_usage) == (None, False)
    assert run.session.phase.usage_measured is None
