"""What an API server's answer to an action means."""

from __future__ import annotations

from typing import Any

import pytest

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
    outcome,
)

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
