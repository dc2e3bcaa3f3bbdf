"""The phase of a pod whose containers have ended, before its node has said it."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.observed.pods import read_pod
from mpirt.controller.observed.slim import slim
from tests.unit.controller.jobs import Body
from tests.unit.controller.pods import launcher, running, terminated

NEVER = {"restartPolicy": "Never"}
OWN = {**NEVER, "containers": [{"name": "mpi", "restartPolicy": "OnFailure"}]}
SIDECAR = {**NEVER, "initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}


def ended(code: int, name: str = "mpi") -> Body:
    return {"name": name, "ready": False, "state": terminated(code)}


def phase(*containers: Body, spec: Body = NEVER, **fields: Any) -> str:
    return read_pod(slim("Pod", launcher(containers=list(containers), spec=spec, **fields))).phase


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([ended(0)], "Succeeded", id="its container with 0"),
        pytest.param([ended(137)], "Failed", id="its container with another code"),
        pytest.param([ended(0), ended(1, "shipper")], "Failed", id="one of two with another code"),
    ],
)
def test_is_the_last_one_when_all_containers_have_ended(containers: list[Body], expected: str) -> None:
    assert phase(*containers) == expected


@pytest.mark.parametrize(
    ("containers", "fields"),
    [
        pytest.param([ended(1), running("shipper")], {}, id="one of two runs"),
        pytest.param([], {}, id="nothing is known of its containers"),
        pytest.param([ended(1)], {"spec": {"restartPolicy": "Always"}}, id="its containers are started again"),
        pytest.param([ended(1)], {"spec": SIDECAR}, id="a sidecar may run"),
        pytest.param([ended(1)], {"spec": OWN}, id="a container has a policy of its own"),
        pytest.param([ended(1)], {"deleted": 30}, id="it is being deleted"),
        pytest.param([ended(1)], {"phase": "Pending"}, id="it has not run"),
    ],
)
def test_is_what_the_node_says_if(containers: list[Body], fields: dict[str, Any]) -> None:
    assert phase(*containers, **fields) == fields.get("phase", "Running")
