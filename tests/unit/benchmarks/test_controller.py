"""What is printed of the controller's costs."""

from __future__ import annotations

from benchmarks.controller import Costs, Figure

COSTS = Costs({
    "writes_per_job": Figure(15.0, load=1.25),
    "create_500_s": Figure(103.456, load=12.0),
    "second_rss_mb": Figure(61.2, load=0.0),
})  # fmt: skip


def test_each_figure_stands_beside_the_load_and_what_is_promised() -> None:
    assert COSTS.lines() == [
        "writes_per_job             15   load  1.2   25 at most",
        "create_500_s           103.46   load 12.0   180 at most",
        "second_rss_mb            61.2   load  0.0",
    ]


def test_machines_get_the_figures_alone() -> None:
    assert COSTS.figures() == {"writes_per_job": 15.0, "create_500_s": 103.46, "second_rss_mb": 61.2}


def test_what_is_promised_of_five_hundred_jobs_is_not_promised_of_others() -> None:
    costs = Costs({"create_1000_s": Figure(200.0, load=1.0), "rss_mb": Figure(300.0, load=1.0)}, jobs=1000)

    assert costs.lines() == [
        "create_1000_s             200   load  1.0",
        "rss_mb                    300   load  1.0",
    ]
