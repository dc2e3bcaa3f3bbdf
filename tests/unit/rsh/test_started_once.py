"""A command is started at most once, in every order of what may break around its start."""

from __future__ import annotations

import pytest

from tests.unit.rsh.startmodel import Limits, search


def one_for_all_attempts(nonce: str) -> str:
    """The folder's name where the attempts of a session share one."""
    return nonce.rpartition("a")[0]


# One of the two searches, which the commit draws.
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("limits", "states"), [(Limits(connections=3), 2000), (Limits(connections=2, takeovers=1), 900)]
)
def test_no_order_of_lost_connections_and_killed_switchboards_starts_a_command_twice(
    limits: Limits, states: int
) -> None:
    found = search(limits)

    assert found.path is None
    assert found.states > states
    assert found.with_a_start > states / 10


def test_the_search_finds_two_starts_where_all_attempts_share_a_folder() -> None:
    found = search(Limits(connections=3), folder=one_for_all_attempts)

    assert found.path is not None
    assert [step.name for step in found.path].count("open") == 3
