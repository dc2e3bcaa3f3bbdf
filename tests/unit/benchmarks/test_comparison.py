"""Medians, ratios and bounds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.comparison import Comparison, Quantity


def paired(ours: Sequence[float], theirs: Sequence[float], *, bound: float = 0.85) -> Comparison:
    return Comparison(Quantity("wall_ratio", "wall time", "ms", bound, paired=True), ours, theirs)


def unpaired(ours: Sequence[float], theirs: Sequence[float], *, bound: float = 0.42) -> Comparison:
    return Comparison(Quantity("memory_ratio", "peak memory", "MB", bound, paired=False), ours, theirs)


class TestRatios:
    def test_of_medians(self) -> None:
        assert unpaired([10, 30, 20], [80, 40, 90]).of_medians == 0.25

    def test_of_an_even_number_the_two_in_the_middle_share_the_median(self) -> None:
        assert unpaired([10, 20, 30, 1000], [100, 100, 100, 100]).of_medians == 0.25

    def test_of_pairs_it_is_the_median_of_each_pairs_ratio(self) -> None:
        assert paired([10, 20, 60], [20, 80, 80]).of_pairs == 0.5

    def test_a_slow_spell_that_meets_both_of_a_pair_changes_nothing_between_pairs(self) -> None:
        calm, stormy = [100.0] * 2, [700.0] * 3

        comparison = paired([*calm, *stormy], [200, 200, 1400, 1400, 1400])

        assert comparison.of_pairs == 0.5

    def test_what_load_does_not_change_has_no_ratio_of_pairs(self) -> None:
        assert unpaired([10], [20]).of_pairs is None

    def test_what_has_no_pairs_may_differ_in_the_number_of_samples(self) -> None:
        assert unpaired([10], [20, 40, 60]).of_medians == 0.25


class TestWhatCounts:
    def test_pairs_where_there_are_any(self) -> None:
        assert paired([10, 20, 60], [20, 80, 80]).ratio == 0.5

    def test_medians_where_there_are_none(self) -> None:
        assert unpaired([10, 20, 60], [20, 80, 80]).ratio == 0.25

    @pytest.mark.parametrize("ours", [pytest.param(49, id="below the bound"), pytest.param(50, id="on it")])
    def test_a_ratio_up_to_the_bound_meets_it(self, ours: float) -> None:
        assert unpaired([ours], [100], bound=0.5).is_met

    def test_a_ratio_above_the_bound_does_not(self) -> None:
        assert not unpaired([51], [100], bound=0.5).is_met


class TestWhatIsNoComparison:
    def test_no_samples(self) -> None:
        with pytest.raises(ValueError, match=r"^memory_ratio: no samples$"):
            unpaired([], [1])

    def test_no_ratio_to_nothing(self) -> None:
        with pytest.raises(ValueError, match=r"^memory_ratio: a sample of 0 has no ratio to it$"):
            unpaired([1, 1], [1, 0])

    def test_a_sample_without_its_pair(self) -> None:
        with pytest.raises(ValueError, match=r"^wall_ratio: 2 and 1 samples are no pairs$"):
            paired([1, 1], [1])
