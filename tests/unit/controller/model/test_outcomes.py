"""What an API server's answer to an action means."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.actions import Action, Create, Delete, Patch, WriteStatus
from mpirt.controller.model.outcomes import Conflict, Done, Exists, Failed, Gone, Outcome, Refused, outcome

OBJECT = {"kind": "Service", "metadata": {"name": "train"}}
CREATE = Create(OBJECT, "why")
PATCH = Patch("Service", "train", (), "why")
DELETE = Delete("Service", "train", "uid", "why")
STATUS = WriteStatus("uid", {}, "why")


def no(reason: str = "", *, field: str = "") -> dict[str, Any]:
    causes = [{"field": field}] if field else []
    return {"kind": "Status", "message": "no", "reason": reason, "details": {"causes": causes}}


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
        pytest.param(CREATE, 404, no(), Gone("no"), id="no namespace"),
        pytest.param(CREATE, 403, no(), Refused("no", final=False), id="forbidden"),
        pytest.param(CREATE, 422, no(field="spec.ports"), Refused("no", final=True), id="invalid"),
        pytest.param(CREATE, 422, no(), Refused("no", final=True), id="invalid without a field"),
        pytest.param(CREATE, 400, no(), Refused("no", final=True), id="not understood"),
        pytest.param(CREATE, 429, no(), Failed("no", answered=True), id="too many requests"),
        pytest.param(
            CREATE, 500, {}, Failed("the API server answered 500", answered=True), id="a failure without a word"
        ),
        pytest.param(CREATE, 401, no(), Failed("no", answered=True), id="a token that has just expired"),
        pytest.param(PATCH, 200, OBJECT, Done(OBJECT), id="changed"),
        pytest.param(PATCH, 409, no("Conflict"), Conflict("no"), id="changed meanwhile"),
        pytest.param(PATCH, 404, no(), Gone("no"), id="gone meanwhile"),
        pytest.param(PATCH, 422, no(), Conflict("no"), id="another uid"),
        pytest.param(PATCH, 422, no(field="spec"), Refused("no", final=True), id="an invalid change"),
        pytest.param(STATUS, 200, OBJECT, Done(OBJECT), id="status written"),
        pytest.param(STATUS, 422, no(), Conflict("no"), id="status of another uid"),
        pytest.param(DELETE, 200, {"kind": "Status"}, Done(), id="deleted"),
        pytest.param(DELETE, 202, OBJECT, Done(OBJECT), id="on its way out"),
        pytest.param(DELETE, 404, no(), Done(), id="deleted by somebody else"),
        pytest.param(DELETE, 409, no("Conflict"), Done(), id="its name is taken by another"),
    ],
)
def test_an_answer_means(action: Action, code: int, body: dict[str, Any], expected: Outcome) -> None:
    assert outcome(action, code, body) == expected
