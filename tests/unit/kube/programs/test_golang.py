"""Which Go is new enough."""

from __future__ import annotations

import pytest

from testbed.kube.programs.golang import is_enough


@pytest.mark.parametrize("says", ["go1.26.6", "go1.26.8", "go1.27", "go2.0", "go1.26.6-X:jsonv2"])
def test_this_go_or_a_later_one_is_used(says: str) -> None:
    assert is_enough(says, (1, 26, 6))


@pytest.mark.parametrize("says", ["go1.19", "go1.26", "go1.26.5", "devel +abc", ""])
def test_an_older_go_or_one_of_unknown_age_is_passed_over(says: str) -> None:
    assert not is_enough(says, (1, 26, 6))
