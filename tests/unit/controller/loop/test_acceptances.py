"""What a dry run has accepted is remembered for a while."""

from __future__ import annotations

import pytest

from mpirt.controller.loop.acceptances import Acceptances
from tests.unit.controller.jobs import NOON, at


@pytest.fixture
def acceptances() -> Acceptances:
    """Both templates of a job were accepted at noon."""
    made = Acceptances()
    made.remember("ml", "Job", "launcher", NOON)
    made.remember("ml", "StatefulSet", "workers", NOON)
    return made


def test_an_acceptance_counts_for_five_minutes_in_its_namespace(acceptances: Acceptances) -> None:
    assert acceptances.of("ml", at(299)) == {"launcher", "workers"}
    assert acceptances.of("ml", at(300)) == set()
    assert acceptances.of("other", NOON) == set()


def test_a_rejection_drops_what_was_accepted_of_its_kind_in_its_namespace(acceptances: Acceptances) -> None:
    acceptances.drop("other", "Job")
    acceptances.drop("ml", "StatefulSet")

    assert acceptances.of("ml", NOON) == {"launcher"}


def test_only_the_last_256_acceptances_are_kept(acceptances: Acceptances) -> None:
    for number in range(254):
        acceptances.remember("ml", "Job", str(number), at(1))
    acceptances.remember("ml", "Job", "launcher", at(2))
    assert len(acceptances.of("ml", at(2))) == 256

    acceptances.remember("ml", "Job", "another", at(3))

    assert len(acceptances.of("ml", at(3))) == 256
    assert "workers" not in acceptances.of("ml", at(3))
