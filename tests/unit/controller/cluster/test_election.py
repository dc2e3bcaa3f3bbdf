"""What a Lease says, and what is written into it."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.cluster.election import Seen, Terms, fresh, held, is_free, is_lease, released, seen
from mpirt.errors import SpecError
from tests.unit.controller.jobs import NOON, at

TERMS = Terms(duration=14, deadline=8, retry=2)


def lease(holder: str, version: str = "7", duration: int = 14) -> dict[str, Any]:
    return {
        "metadata": {"name": "it", "resourceVersion": version},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": duration,
            "acquireTime": "2026-05-04T11:00:00.000000Z",
            "leaseTransitions": 3,
        },
    }


class TestWhoMayTakeIt:
    def test_its_holder(self) -> None:
        assert is_free(seen(lease("me"), None, 100, TERMS), "me", 100)

    def test_anybody_if_it_was_given_back(self) -> None:
        assert is_free(seen(lease(""), None, 100, TERMS), "me", 100)

    def test_nobody_else_until_it_has_been_unchanged_for_its_duration(self) -> None:
        found = seen(lease("other"), None, 100, TERMS)

        assert not is_free(found, "me", 113.9)
        assert is_free(found, "me", 114)

    @pytest.mark.parametrize("duration", ["15", None, 0, -1])
    def test_nobody_else_for_a_while_if_it_has_no_valid_duration(self, duration: Any) -> None:
        found = seen(lease("other", duration=duration), None, 100, TERMS)

        assert not is_free(found, "me", 113.9)
        assert is_free(found, "me", 114)

    def test_every_change_counts_from_when_it_was_seen(self) -> None:
        first = seen(lease("other", "7"), None, 100, TERMS)

        assert seen(lease("other", "7"), first, 110, TERMS) == first
        assert seen(lease("other", "8"), first, 110, TERMS) == Seen("8", "other", 14, 110)


def test_an_answer_without_a_version_is_no_lease() -> None:
    assert is_lease(lease("me"))
    assert not is_lease({"message": "<html>Sign in</html>"})


class TestWhatIsWritten:
    def test_a_lease_that_nobody_had(self) -> None:
        assert fresh("it", "here", "me", TERMS, NOON)["spec"] == {
            "holderIdentity": "me",
            "leaseDurationSeconds": 14,
            "acquireTime": "2026-05-04T12:00:00.000000Z",
            "renewTime": "2026-05-04T12:00:00.000000Z",
            "leaseTransitions": 0,
        }

    def test_who_takes_it_from_another_counts(self) -> None:
        taken = held(lease("other"), "me", TERMS, at(1))

        assert taken["metadata"] == {"name": "it", "resourceVersion": "7"}
        assert taken["spec"] == {
            "holderIdentity": "me",
            "leaseDurationSeconds": 14,
            "acquireTime": "2026-05-04T12:00:01.000000Z",
            "renewTime": "2026-05-04T12:00:01.000000Z",
            "leaseTransitions": 4,
        }

    def test_who_renews_it_does_not(self) -> None:
        spec = held(lease("me"), "me", TERMS, at(1))["spec"]

        assert (spec["leaseTransitions"], spec["acquireTime"]) == (3, "2026-05-04T11:00:00.000000Z")

    def test_who_gives_it_back_leaves_it_to_the_next(self) -> None:
        spec = released(lease("me"), at(1))["spec"]

        assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)


@pytest.mark.parametrize(("duration", "deadline", "most"), [(14, 8.0, 5.0), (60, 20.0, 5.0), (3, 1.8, 1.0)])
def test_a_write_that_began_before_the_deadline_ends_before_another_replica_may_write(
    duration: int, deadline: float, most: float
) -> None:
    assert Terms(duration, deadline, 0.5).write_within == pytest.approx(most)
    assert deadline + most < duration


@pytest.mark.parametrize(("deadline", "retry", "renewal"), [(8.0, 2.0, 3.0), (2.5, 2.0, 1.25)])
def test_a_renewal_that_fails_leaves_time_for_another(deadline: float, retry: float, renewal: float) -> None:
    assert Terms(14, deadline, retry).renewal == renewal


@pytest.mark.parametrize("terms", [(8, 8.0, 2.0), (14, 2.0, 2.0), (14, 8.0, 0.0)])
def test_terms_leave_time_between_the_loser_and_the_next(terms: tuple[int, float, float]) -> None:
    with pytest.raises(SpecError, match="longer than the one before"):
        Terms(*terms)
