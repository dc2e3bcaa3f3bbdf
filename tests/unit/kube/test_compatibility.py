"""The page that says with which versions mpirt was tested."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from testbed.kube.compatibility import GreenRun, as_data, from_data, green_run, page, with_run
from testbed.kube.errors import ClusterError

VERSIONS = {"kubernetes": "1.37.2", "containerd": "2.4.2", "etcd": "3.7.3", "runc": "1.1.5", "coredns": "1.15.0"}
NEWEST = GreenRun("1.37.2", "2.4.2", "3.7.3", "1.1.5", {"check": 2800, "e2e": 190}, "2026-11-22")
OLDEST = GreenRun("1.34.4", "2.4.2", "3.7.3", "1.1.5", {"e2e": 25}, "2026-11-20")


def summary(*, red: bool = False) -> dict[str, Any]:
    stages = [{"name": "check", "tests": 2800}, {"name": "cluster", "tests": 0}, {"name": "e2e", "tests": 190}]
    return {"red": red, "stages": stages}


def test_a_green_run_is_kept_with_its_versions_and_numbers() -> None:
    assert green_run(summary(), VERSIONS, date(2026, 11, 22)) == NEWEST


def test_a_red_run_is_refused() -> None:
    with pytest.raises(ClusterError) as refused:
        green_run(summary(red=True), VERSIONS, date(2026, 11, 22))

    assert str(refused.value) == "the last run was red\n  mend it, run make test-full, and record that run"


def test_the_last_run_of_a_minor_version_counts() -> None:
    former = GreenRun("1.37.1", "2.4.1", "3.7.3", "1.1.5", {"e2e": 180}, "2026-10-01")

    assert with_run([former, OLDEST], NEWEST) == [NEWEST, OLDEST]


def test_the_newest_version_comes_first() -> None:
    assert with_run([NEWEST], OLDEST) == [NEWEST, OLDEST]


def test_a_run_is_a_row_of_the_page() -> None:
    rows = page([NEWEST, OLDEST]).splitlines()[-2:]

    assert rows == [
        "| 1.37.2 | 2.4.2 | 3.7.3 | 1.1.5 | 2800 in check, 190 in e2e | 2026-11-22 |",
        "| 1.34.4 | 2.4.2 | 3.7.3 | 1.1.5 | 25 in e2e | 2026-11-20 |",
    ]


def test_kept_runs_are_read_back() -> None:
    assert from_data(as_data([NEWEST, OLDEST])) == [NEWEST, OLDEST]
