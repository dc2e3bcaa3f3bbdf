"""The status screen's tables."""

from __future__ import annotations

from tests.kube import status


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [["NODE", "STATE"], ["node-1", "Ready"], ["node-22", "NotReady"]]

    assert status.table(rows) == [
        "NODE     STATE",
        "node-1   Ready",
        "node-22  NotReady",
    ]
