"""What controllers wrote is judged rightly: who had no leave to write is found, and what was made twice."""

from __future__ import annotations

import json

import pytest

from tests.api.apiproxy import Write
from tests.api.beds import intruders, made_twice

LEASES = "/apis/coordination.k8s.io/v1/namespaces/ml/leases"
FIRST, SECOND = "10.0.0.1", "10.0.0.2"
MAPS = "/api/v1/namespaces/ml/configmaps"


def lease(at: float, address: str) -> Write:
    body = json.dumps({"metadata": {"name": "it"}, "spec": {"holderIdentity": "somebody"}}).encode()
    return Write(at, address, "PUT", f"{LEASES}/it", body, 200)


def creation(at: float, address: str, code: int = 201, query: str = "") -> Write:
    body = json.dumps({"metadata": {"name": "train-config"}}).encode()
    return Write(at, address, "POST", f"{MAPS}?fieldManager=mpirt-controller{query}", body, code)


@pytest.mark.parametrize(
    ("writes", "found"),
    [
        pytest.param([lease(1, FIRST), creation(8.9, FIRST)], [], id="the holder until its deadline"),
        pytest.param([lease(1, FIRST), creation(9.1, FIRST)], [f"8.1 s after {FIRST}"], id="and no longer"),
        pytest.param(
            [lease(1, FIRST), lease(2, SECOND), creation(3, FIRST)], [f"1.0 s after {SECOND}"], id="who lost it"
        ),
    ],
)
def test_who_may_not_write_is_found(writes: list[Write], found: list[str]) -> None:
    assert intruders(writes) == [f"POST configmaps train-config by {FIRST}, {after}" for after in found]


@pytest.mark.parametrize(
    ("writes", "found"),
    [
        pytest.param([creation(1, FIRST), creation(2, SECOND)], ["configmaps train-config"], id="two creations"),
        pytest.param(
            [creation(1, FIRST, query="&dryRun=All"), creation(2, FIRST), creation(3, SECOND, 409)],
            [],
            id="a dry run and a conflict",
        ),
    ],
)
def test_what_was_made_twice_is_found(writes: list[Write], found: list[str]) -> None:
    assert made_twice(writes) == found
