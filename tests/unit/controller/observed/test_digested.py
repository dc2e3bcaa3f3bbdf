"""What the cache keeps of sections that may be long: digests, by which a drift is found all the same."""

from __future__ import annotations

import json

import pytest

from mpirt.controller.decisions.drift import correction
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.supporting import role
from mpirt.controller.model.actions import Patch
from mpirt.controller.model.objectnames import MOST_WORKERS
from mpirt.controller.observed.observe import read_live
from mpirt.controller.observed.slim import named_workers, slim
from tests.unit.controller.jobs import Body, parsed

KEEPERS = {"keeper-1-amd64": "AAAA" * 25_000}
LARGE = parsed(replicas=MOST_WORKERS)
MADE: dict[str, Body] = {"ConfigMap": config_map(LARGE, KEEPERS), "Role": role(LARGE, [*LARGE.workers.names])}


def kept(kind: str, **changed: object) -> Body:
    """The object in the cache, as the API server has it."""
    body = {**MADE[kind], **changed}
    return slim(kind, json.loads(json.dumps(body)))


@pytest.mark.parametrize("kind", MADE)
def test_a_job_of_ten_thousand_workers_takes_little_space(kind: str) -> None:
    assert len(json.dumps(MADE[kind])) > 200_000

    assert len(json.dumps(kept(kind))) < 1_500


def test_the_workers_that_a_role_names_are_known_all_the_same() -> None:
    names = {"train-worker-0", "train-worker-1", "train-worker-7", "train-worker-9"}
    body = role(LARGE, [*names, "another", "train-worker-x"])

    assert named_workers("train", slim("Role", body)) == names
    assert named_workers("train", slim("Role", role(LARGE, []))) == set()
    assert named_workers("train", {}) == set()


@pytest.mark.parametrize(
    ("kind", "section", "edited"),
    [
        pytest.param("ConfigMap", "data", {**MADE["ConfigMap"]["data"], "hostfile": ""}, id="a changed file"),
        pytest.param("ConfigMap", "data", {**MADE["ConfigMap"]["data"], "more": ""}, id="a file more"),
        pytest.param("ConfigMap", "binaryData", {"keeper-1-amd64": "BBBB"}, id="another keeper"),
        pytest.param("ConfigMap", "binaryData", {}, id="no keeper"),
        pytest.param("Role", "rules", MADE["Role"]["rules"][:1], id="a rule less"),
        pytest.param("Role", "rules", [], id="no rule"),
    ],
)
def test_an_edit_is_found_and_the_whole_section_is_written(kind: str, section: str, edited: object) -> None:
    action = correction(MADE[kind], read_live(kind, kept(kind, **{section: edited})))

    assert isinstance(action, Patch)
    [operation] = action.operations[1:]
    assert operation == {"op": "add", "path": f"/{section}", "value": MADE[kind][section]}


def test_a_section_that_is_not_wanted_is_removed() -> None:
    action = correction(config_map(LARGE, {}), read_live("ConfigMap", kept("ConfigMap")))

    assert isinstance(action, Patch)
    assert action.operations[1:] == ({"op": "remove", "path": "/binaryData"},)
