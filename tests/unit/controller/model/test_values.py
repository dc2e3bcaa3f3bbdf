"""Values that can't be, and what is said of actions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mpirt import launchenv
from mpirt.controller.model.actions import Create, earliest
from mpirt.controller.model.kinds import OWNED, POD_GROUP, RESOURCES
from mpirt.controller.model.reading import digest, duration, parse_time, write_time
from mpirt.controller.model.spec import Settings
from mpirt.errors import SpecError
from tests.unit.controller.jobs import NOON, at


@pytest.mark.parametrize("domain", ["", ".cluster.local", "cluster.local."])
def test_a_cluster_domain_stands_without_dots_around_it(domain: str) -> None:
    with pytest.raises(SpecError, match="cluster domain"):
        Settings(runtime_image="x", cluster_domain=domain)


def test_a_creation_names_what_it_makes() -> None:
    made = Create({"kind": "Role", "metadata": {"name": "r"}}, "because")

    assert (made.kind, made.name) == ("Role", "r")


def test_the_earliest_of_moments_that_may_never_come() -> None:
    assert earliest(None, at(2), at(1), None) == at(1)
    assert earliest(None, None) is None


def test_a_digest_is_the_same_for_the_same_in_any_order() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-05-04T12:00:00Z", NOON),
        ("2026-05-04T12:00:00", NOON),
        ("2026-05-04T14:00:00+02:00", NOON),
        ("0001-01-01T00:00:00+14:00", datetime(1900, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59-14:00", datetime(9000, 1, 1, tzinfo=UTC)),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times(written: str, read: datetime | None) -> None:
    assert parse_time(written) == read


@pytest.mark.parametrize(
    ("seconds", "years"),
    [pytest.param(9_000_000_000_000, 100, id="long"), pytest.param(-(2**63), -100, id="negative")],
)
def test_a_duration_is_cut_to_what_can_be_added_to_any_time(seconds: int, years: int) -> None:
    assert duration(seconds) == timedelta(days=365 * years)


def test_times_are_written_in_whole_seconds() -> None:
    assert write_time(datetime(2026, 5, 4, 12, 0, 0, 999999, tzinfo=UTC)) == "2026-05-04T12:00:00Z"


def test_every_kind_has_its_place_in_the_api() -> None:
    # The group of PodGroups depends on the gang scheduler.
    assert {*OWNED} - {POD_GROUP} <= RESOURCES.keys()
    assert (RESOURCES["Job"].group, RESOURCES["Pod"].group) == ("batch", "")


def test_launchers_get_as_many_sessions_as_there_are_daemons() -> None:
    assert launchenv.open_mpi_5("a", 7)["PRTE_MCA_plm_ssh_num_concurrent"] == "7"
    assert launchenv.intel("a")["I_MPI_HYDRA_BOOTSTRAP_EXEC"] == "a"
    assert launchenv.mpich("a")["HYDRA_LAUNCHER_EXEC"] == "a"
