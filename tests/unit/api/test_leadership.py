"""What controllers wrote is judged rightly: who had no leave to write is found, and what was made twice."""

from __future__ import annotations

import json

from tests.api.apiproxy import Write
from tests.api.beds import intruders, made_twice

LEASES = "/apis/coordination.k8s.io/v1/namespaces/ml/leases"
MAPS = "/api/v1/namespaces/ml/configmaps"


def lease(at: float, address: str) -> Write:
    body = json.dumps({"metadata": {"name": "it"}, "spec": {"holderIdentity": "somebody"}}).encode()
    return Write(at, address, "PUT", f"{LEASES}/it", body, 200)


def creation(at: float, address: str, code: int = 201, query: str = "") -> Write:
    body = json.dumps({"metadata": {"name": "train-config"}}).encode()
    return Write(at, address, "POST", f"{MAPS}?fieldManager=mpirt-controller{query}", body, code)


def test_the_holder_may_write_until_its_deadline() -> None:
    assert intruders([lease(1, "10.0.0.1"), creation(8.9, "10.0.0.1")]) == []


def test_a_holder_that_has_not_renewed_for_too_long_may_not() -> None:
    assert intruders([lease(1, "10.0.0.1"), creation(9.1, "10.0.0.1")]) == [
        "POST configmaps train-config by 10.0.0.1, 8.1 s after 10.0.0.1"
    ]


def test_a_replica_that_lost_the_lease_to_another_may_not_write() -> None:
    found = intruders([lease(1, "10.0.0.1"), lease(2, "10.0.0.2"), creation(3, "10.0.0.1")])

    assert found == ["POST configmaps train-config by 10.0.0.1, 1.0 s after 10.0.0.2"]


def test_an_object_that_was_made_by_two_creations_is_made_twice() -> None:
    assert made_twice([creation(1, "10.0.0.1"), creation(2, "10.0.0.2")]) == ["configmaps train-config"]


def test_a_dry_run_and_a_conflict_are_no_creations() -> None:
    writes = [creation(1, "10.0.0.1", query="&dryRun=All"), creation(2, "10.0.0.1"), creation(3, "10.0.0.2", 409)]

    assert made_twice(writes) == []
