"""What is printed of the timelines of losses."""

from __future__ import annotations

from benchmarks.elastic import Timeline, rendered

OURS = Timeline("node lost", "mpirt", ended=14.04, goes_on=31.2, back=61.0, code=0)
THEIRS = Timeline("node lost", "kubectl exec", ended=None, goes_on=None, back=None, code=None)


def test_what_did_not_happen_within_its_time_is_none() -> None:
    lines = rendered([OURS, THEIRS]).splitlines()

    assert lines[:4] == [
        "EVENT      BY            AGENT ENDED  GOES ON  ALL BACK  EXIT",
        "node lost  mpirt         14.0         31.2     61.0      0",
        "node lost  kubectl exec  none         none     none      none",
        "",
    ]
