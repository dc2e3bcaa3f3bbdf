"""What is printed of a comparison."""

from __future__ import annotations

from benchmarks import report
from benchmarks.comparison import Comparison, Quantity

WALL = Comparison(Quantity("wall_ratio", "wall time", "ms", 0.85, paired=True), [100, 110, 150], [200, 200, 200])
HELD = Comparison(Quantity("held_memory_ratio", "held", "MB", 0.6, paired=False), [9, 9.26, 9.5], [14])


def test_the_table_shows_spreads_ratios_and_whether_the_bound_is_met() -> None:
    lines = report.rendered([WALL, HELD], ours="mpirt-rsh", theirs="kubectl exec").splitlines()

    assert lines[:4] == [
        "MEASURED       MPIRT-RSH            KUBECTL EXEC         OF MEDIANS  OF PAIRS  BOUND    MET",
        "wall time, ms  110.0 (100.0-150.0)  200.0 (200.0-200.0)  0.550       0.550*    <= 0.85  yes",
        "held, MB       9.3 (9.0-9.5)        14.0 (14.0-14.0)     0.661*      -         <= 0.60  no",
        "",
    ]


def test_the_table_says_which_ratio_counts_and_why() -> None:
    text = report.rendered([WALL], ours="mpirt-rsh", theirs="kubectl exec")

    assert "The ratio with a star counts" in text
    assert "both runs of a pair meet the same load" in text


def test_for_programs_there_is_one_line_with_the_ratios_that_count() -> None:
    line = report.json_line(report.ratios([WALL, HELD]))

    assert line == '{"wall_ratio": 0.55, "held_memory_ratio": 0.6614}'
