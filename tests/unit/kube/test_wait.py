"""What a wait in vain says."""

from __future__ import annotations

import re

import pytest

from testbed.kube.errors import ClusterError
from testbed.kube.wait import Moment, Stopwatch, until


def test_the_error_names_what_was_waited_for_and_what_to_do() -> None:
    with pytest.raises(ClusterError) as caught:
        until(lambda: False, within=0.01, what="the tide", remedy="ask the moon")

    assert str(caught.value) == "waited 0.01 s for the tide\n  ask the moon"


def test_the_error_says_what_there_is_instead_when_time_is_up() -> None:
    levels = iter(range(100))

    with pytest.raises(ClusterError) as caught:
        until(lambda: next(levels) > 100, within=0, what="the tide", instead=lambda: f"a level of {next(levels)}")

    assert re.fullmatch("waited 0 s for the tide; there is a level of [1-9]", str(caught.value))


class TestTheStopwatch:
    def test_counts_no_second_in_which_somebody_waited_for_a_processor(self) -> None:
        assert Moment(100.0, 40.0).until(Moment(110.0, 44.0)) == 6.0

    def test_counts_a_quarter_where_somebody_always_does(self) -> None:
        assert Moment(100.0, 40.0).until(Moment(110.0, 50.0)) == 2.5

    def test_is_a_clock_where_nobody_does(self) -> None:
        assert Moment(100.0, 0.0).until(Moment(110.0, 0.0)) == 10.0

    def test_runs(self) -> None:
        watch = Stopwatch()

        until(lambda: watch.seconds() > 0, within=10, what="the next moment")
