"""A launcher's image volume that the API server refuses, and nodes that come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpirt.controller.model.actions import Create, Rejection
from mpirt.controller.model.spec import RuntimeVolume, Settings
from tests.unit.controller import pods
from tests.unit.controller.jobs import SETTINGS
from tests.unit.controller.world import World

ABLE = replace(SETTINGS, why_copied="")
REFUSED = "copy: the API server refuses it as an image volume"


class PolicyWorld(World):
    """An admission policy permits only volumes that were there before images."""

    def _create(self, action: Create) -> bool:
        self.refuse.clear()
        template = action.manifest.get("spec", {}).get("template", {}).get("spec", {})
        if action.kind == "Job" and any("image" in volume for volume in template["volumes"]):
            self.refuse["Job"] = Rejection("Job", "", "restricted volume types", final=False)
        return super()._create(action)


def with_launcher(world: World) -> World:
    world.settle()
    world.workers_are(pods.worker(0), pods.worker(1))
    world.settle()
    return world


def runtime(world: World) -> str:
    found: str = world.get("Job")["spec"]["template"]["metadata"]["annotations"]["mpirt.dev/runtime"]
    return found


def test_a_volume_that_is_refused_is_replaced_by_the_copy() -> None:
    assert runtime(with_launcher(PolicyWorld(settings=ABLE))) == REFUSED


def test_a_volume_that_an_administrator_wants_is_not_replaced() -> None:
    world = PolicyWorld(settings=replace(ABLE, runtime_volume=RuntimeVolume.IMAGE))
    world.settle()

    assert "Job" not in world.kinds()
    assert "restricted volume types" in world.condition("Running")[2]


def test_another_rejection_changes_nothing() -> None:
    world = World(settings=ABLE)
    world.rejections.append(Rejection("Service", "another", "no", final=False))

    assert runtime(with_launcher(world)) == "image volume"


@pytest.mark.parametrize(
    ("before", "after"), [(ABLE, SETTINGS), (SETTINGS, ABLE)], ids=["an old node joins", "the last one goes"]
)
def test_what_nodes_can_is_asked_once_and_a_launcher_is_never_replaced(before: Settings, after: Settings) -> None:
    world = with_launcher(World(settings=before))
    chosen = runtime(world)

    world.settings = after

    assert world.settle() == []
    assert runtime(world) == chosen
