"""Comparing what there is of two jobs."""

from __future__ import annotations

import json

from tests.e2e.controller.states import as_far_as_told, difference, has_workers, is_settled

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


SETTLED: dict[str, dict[str, object]] = {
    "ServiceAccount": {"secrets": [{"name": "JOB-launcher-token-SUFFIX"}]},
    "Pod": {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    "StatefulSet": {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}},
    "MPIJob": {"status": {"replicaStatuses": {"Launcher": {"active": 1}, "Worker": {"active": 1}}}},
    "Secret": {},
}
UNSETTLED: dict[str, dict[str, object]] = {
    "ServiceAccount": {},
    "Pod": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    "StatefulSet": {"spec": {"replicas": 1}, "status": {}},
    "MPIJob": {"status": {"replicaStatuses": {"Launcher": {"active": 1}, "Worker": {}}}},
}


def of(facts: dict[str, dict[str, object]]) -> tuple[str, ...]:
    return tuple(json.dumps({"kind": kind, **fact}) for kind, fact in facts.items())


def test_a_job_is_settled_when_nobody_has_anything_left_to_say() -> None:
    assert is_settled(of(SETTLED))
    for kind, fact in UNSETTLED.items():
        assert not is_settled(of(SETTLED | {kind: fact}))


def test_workers_are_there_as_long_as_anything_of_them_is() -> None:
    launcher = json.dumps({"kind": "Pod", "metadata": {"name": "JOB-launcher-SUFFIX"}})
    others = (launcher, MADE)

    assert not has_workers(others)
    for left in (
        POD,
        *(json.dumps({"kind": kind, "metadata": {}}) for kind in ("StatefulSet", "ControllerRevision")),
    ):
        assert has_workers((*others, left))
