"""Comparing what there is of two jobs."""

from __future__ import annotations

import json

from tests.e2e.controller.states import as_far_as_told, difference, has_token, has_workers

POD = json.dumps({"kind": "Pod", "metadata": {"name": "JOB-worker-0"}})


def told(reason: str, times: int = 1) -> str:
    return json.dumps({"kind": "Event", "about": ["x", "JOB", ""], "said": ["Normal", reason, "", times]})


MADE, RUNS = told("SuccessfulCreate"), told("MPIJobRunning")


def test_what_kubernetes_has_not_told_is_not_wanted() -> None:
    assert as_far_as_told((MADE, MADE, RUNS, POD), (MADE, RUNS, POD)) == tuple(sorted((MADE, RUNS, POD)))


def test_what_it_has_told_twice_is_a_difference() -> None:
    for found in ((MADE, MADE), (told("SuccessfulCreate", 2),)):
        assert difference(as_far_as_told((MADE,), found), found)


def test_what_the_controller_has_not_told_is_a_difference() -> None:
    assert difference(as_far_as_told((MADE, RUNS, POD), (MADE, POD)), (MADE, POD))


def test_so_is_an_object_that_is_not_there() -> None:
    assert difference(as_far_as_told((MADE, POD), (MADE,)), (MADE,))


def test_an_account_has_its_token_when_it_names_it() -> None:
    account = {"kind": "ServiceAccount", "metadata": {"name": "JOB-launcher"}}
    secret = json.dumps({"kind": "Secret", "metadata": {"name": "JOB-launcher-token-SUFFIX"}})
    named = json.dumps(account | {"secrets": [{"name": "JOB-launcher-token-SUFFIX"}]})

    assert not has_token((POD, json.dumps(account), secret))
    assert has_token((POD, named, secret))


def test_workers_are_there_as_long_as_anything_of_them_is() -> None:
    launcher = json.dumps({"kind": "Pod", "metadata": {"name": "JOB-launcher-SUFFIX"}})
    others = (launcher, MADE)

    assert not has_workers(others)
    for left in (
        POD,
        *(json.dumps({"kind": kind, "metadata": {}}) for kind in ("StatefulSet", "ControllerRevision")),
    ):
        assert has_workers((*others, left))
