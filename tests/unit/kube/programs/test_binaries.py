"""What is said when a program can't be made."""

from __future__ import annotations

from testbed.kube.errors import ClusterError
from testbed.kube.programs.binaries import naming_others

UNREACHABLE = ClusterError("the source of kubernetes 1.35.4 could not be fetched", remedy="check the network")


def test_versions_that_were_made_before_are_named() -> None:
    error = naming_others(UNREACHABLE, ["1.34", "1.37"])

    assert error.what == UNREACHABLE.what
    assert error.remedy == "check the network; --kubernetes 1.34 or 1.37 works without it"


def test_nothing_is_named_where_nothing_was_made() -> None:
    assert naming_others(UNREACHABLE, []) is UNREACHABLE
