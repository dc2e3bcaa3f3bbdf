"""The values of the controller: digests, nesting, quantities, and the outcomes of actions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mpirt import launchenv
from mpirt.controller.model.actions import (
    Action,
    Conflict,
    Create,
    Delete,
    Done,
    Exists,
    Missing,
    Outcome,
    Patch,
    Refused,
    Unavailable,
    WriteStatus,
    earliest,
    outcome,
)
from mpirt.controller.model.kinds import OWNED, POD_GROUP, RESOURCES
from mpirt.controller.model.quantities import greatest, is_quantity, total
from mpirt.controller.model.reading import DEEPEST, digest, duration, parse_time, pruned, write_time
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


def nested(levels: int, innermost: Any) -> Any:
    """So many levels, by turns a list and an object."""
    value = innermost
    for level in reversed(range(levels)):
        value = {"a": value} if level % 2 else [value]
    return value


def test_a_value_within_the_limit_stays() -> None:
    value = {"name": "x", "rows": [1, 2.5, None, True, {}, []], "deep": nested(DEEPEST - 1, 1)}

    assert pruned(value) == value


def test_nothing_is_left_of_what_is_below_the_limit() -> None:
    assert pruned(nested(DEEPEST + 1, 1)) == nested(DEEPEST, None)
    assert pruned(nested(5_000, 1)) == nested(DEEPEST, None)


def test_fields_beside_it_stay() -> None:
    assert pruned({"deep": nested(5_000, 1), "after": {"b": [1]}})["after"] == {"b": [1]}


@pytest.mark.parametrize("text", ["0", "2", "0.5", ".5", "100m", "4Gi", "1e3", "1E-3", "5E", "-1", "+1k", "7n"])
def test_what_is_a_quantity(text: str) -> None:
    assert is_quantity(text)
    assert total([text])


@pytest.mark.parametrize("text", ["", "many", "1 Gi", "1gi", "1KB", "0x10", "1e", "1_000"])
def test_what_is_none(text: str) -> None:
    assert not is_quantity(text)
    with pytest.raises(ValueError, match="not a quantity"):
        total([text])


@pytest.mark.parametrize(
    ("quantities", "sum_"),
    [
        ([], "0"),
        (["0", "0Gi"], "0"),
        (["500m", "500m"], "1"),
        (["1", "0.25"], "1250m"),
        (["600", "400"], "1k"),
        (["1e3", "1"], "1001"),
        (["512Mi", "512Mi"], "1Gi"),
        (["1Gi", "1Mi"], "1025Mi"),
        (["1Gi", "1"], "1073741825"),
        (["100", "28", "0.5Ki"], "640"),
        (["0", "3Ki"], "3Ki"),
        (["1Gi", "1G"], "2073741824"),
        (["1.5Gi"], "1536Mi"),
        (["100n", "1u"], "1100n"),
        (["0.1n"], "1n"),
        (["512", "0.5Ki"], "1024"),
        (["0.5Ki", "512"], "1Ki"),
        (["3", "-1"], "2"),
        (["7Ei"], "7Ei"),
        (["1024Ei"], "9223372036854775807"),
        (["1e999999999", "1"], "9223372036854775807"),
        (["7Ei", "7E"], "9223372036854775807"),
        ([f"-1e{'9' * 5000}"], "-9223372036854775807"),
        (["1e-999999999"], "1n"),
    ],
)
def test_a_sum_has_the_form_that_kubernetes_gives_it(quantities: list[str], sum_: str) -> None:
    assert total(quantities) == sum_


def test_the_greatest_is_found_across_forms() -> None:
    assert greatest(["1Gi", "1G", "900M"]) == "1Gi"
    assert greatest(["1500m", "1"]) == "1500m"


OBJECT = {"kind": "Service", "metadata": {"name": "train"}}
CREATE = Create(OBJECT, "why")
PATCH = Patch("Service", "train", (), "why")
DELETE = Delete("Service", "train", "uid", "why")
AS_SEEN = Delete("Pod", "train", "uid", "why", version="7")
STATUS = WriteStatus("MPIJob", "train", "uid", {}, "why")


# As API servers of 1.37 say it where a test of a JSON patch fails, or where a path of it is not there.
UNFIT: dict[str, Any] = {
    "kind": "Status",
    "message": "the server rejected our request due to an error in our request",
    "reason": "Invalid",
    "details": {},
}
WEBHOOK = {"kind": "Status", "message": 'admission webhook "x" denied the request: no'}
# As a ValidatingAdmissionPolicy says it: the causes name no field.
POLICY = {
    "kind": "Status",
    "message": "no",
    "reason": "Invalid",
    "details": {"name": "train", "kind": "services", "causes": [{"message": "no"}]},
}


def no(reason: str = "", *, field: str = "") -> dict[str, Any]:
    causes = [{"field": field}] if field else []
    return {"kind": "Status", "message": "no", "reason": reason, "details": {"name": "train", "causes": causes}}


@pytest.mark.parametrize(
    ("action", "code", "body", "expected"),
    [
        pytest.param(CREATE, 201, OBJECT, Done(OBJECT), id="made"),
        pytest.param(Create(OBJECT, "why", dry_run=True), 201, OBJECT, Done(), id="could be made"),
        pytest.param(
            Create(OBJECT, "why", dry_run=True),
            400,
            {"message": 'admission webhook "x" does not support dry run'},
            Done(),
            id="can't be asked",
        ),
        pytest.param(
            Create(OBJECT, "why", dry_run=True),
            403,
            {"message": 'jobs.batch "train-launcher" is forbidden: exceeded quota: one, requested: 1'},
            Done(),
            id="could be made where there is room",
        ),
        pytest.param(Create(OBJECT, "why", once=True), 201, OBJECT, Done(), id="told"),
        pytest.param(Create(OBJECT, "why", once=True), 409, no("AlreadyExists"), Done(), id="told before"),
        pytest.param(Create(OBJECT, "why", dry_run=True), 409, no("AlreadyExists"), Done(), id="could, if free"),
        pytest.param(CREATE, 409, no("AlreadyExists"), Exists(), id="there is one"),
        pytest.param(CREATE, 409, no("Conflict"), Conflict("no"), id="another conflict"),
        pytest.param(CREATE, 404, no(), Missing("no"), id="no namespace"),
        pytest.param(CREATE, 403, no(), Refused("no", final=False), id="forbidden"),
        pytest.param(CREATE, 422, no(field="spec.ports"), Refused("no", final=True), id="invalid"),
        pytest.param(CREATE, 422, POLICY, Refused("no", final=False), id="a policy's no"),
        pytest.param(CREATE, 400, WEBHOOK, Refused(WEBHOOK["message"], final=False), id="a webhook's no"),
        pytest.param(CREATE, 400, no(), Refused("no", final=True), id="not understood"),
        pytest.param(CREATE, 429, no(), Unavailable("no", answered=True, retry_after=7.0), id="too many requests"),
        pytest.param(
            CREATE,
            500,
            {},
            Unavailable("the API server answered 500", answered=True, retry_after=7.0),
            id="a failure without a word",
        ),
        pytest.param(
            CREATE,
            401,
            no(),
            Unavailable("no", answered=True, retry_after=7.0),
            id="a token that has just expired",
        ),
        pytest.param(PATCH, 200, OBJECT, Done(OBJECT), id="changed"),
        pytest.param(PATCH, 409, no("Conflict"), Conflict("no"), id="changed meanwhile"),
        pytest.param(PATCH, 404, no(), Missing("no"), id="gone meanwhile"),
        pytest.param(PATCH, 422, UNFIT, Conflict(UNFIT["message"]), id="another uid, or a path that is not there"),
        pytest.param(PATCH, 422, POLICY, Refused("no", final=False), id="a change that a policy refuses"),
        pytest.param(
            PATCH, 422, WEBHOOK, Refused(WEBHOOK["message"], final=False), id="a change that a webhook refuses"
        ),
        pytest.param(PATCH, 422, no(field="spec"), Refused("no", final=True), id="an invalid change"),
        pytest.param(STATUS, 200, OBJECT, Done(OBJECT), id="status written"),
        pytest.param(STATUS, 422, UNFIT, Conflict(UNFIT["message"]), id="status of another uid"),
        pytest.param(STATUS, 422, POLICY, Refused("no", final=False), id="a status that a policy refuses"),
        pytest.param(DELETE, 200, {"kind": "Status"}, Done(), id="deleted"),
        pytest.param(DELETE, 202, OBJECT, Done(OBJECT), id="on its way out"),
        pytest.param(DELETE, 404, no(), Done(), id="deleted by somebody else"),
        pytest.param(DELETE, 409, no("Conflict"), Done(), id="its name is taken by another"),
        pytest.param(AS_SEEN, 409, no("Conflict"), Conflict("no"), id="not deleted because it has changed"),
        pytest.param(AS_SEEN, 404, no("NotFound"), Done(), id="nothing to delete, changed or not"),
    ],
)
def test_an_answer_means(action: Action, code: int, body: dict[str, Any], expected: Outcome) -> None:
    assert outcome(action, code, body, retry_after=7.0) == expected
