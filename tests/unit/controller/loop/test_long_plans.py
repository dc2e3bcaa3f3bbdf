"""Plans with more actions than fit into one turn."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from mpirt.controller.dialects.training_job import SUSPENDED_ANNOTATION
from mpirt.controller.loop.reconcile import Result
from mpirt.controller.model.actions import Refused, Unavailable
from tests.unit.controller.jobs import mpi_job
from tests.unit.controller.loop.ground import Ground, begun, created
from tests.unit.controller.world import writes


def slow(*, takes: float = 0.3) -> Ground:
    """A job with 60 workers to create, and an API server that takes its time for each."""
    ground = begun(60)
    ground.takes = takes
    return ground


class TestAPlanThatIsCutShort:
    def test_leaves_the_rest_to_a_turn_after_those_of_other_jobs(self) -> None:
        ground = slow()

        assert ground.look().result is Result.CUT_SHORT

        assert created(ground) == [f"elastic-worker-{number}" for number in range(7)]

    def test_begins_one_action_at_least(self) -> None:
        ground = slow(takes=60)

        assert ground.look().result is Result.CUT_SHORT

        assert created(ground) == ["elastic-worker-0"]

    def test_reports_what_has_happened_so_far(self) -> None:
        ground = Ground(mpi_job())
        ground.takes = 0.6

        assert ground.look().result is Result.CUT_SHORT

        made = ["try Job", "try StatefulSet", "create ConfigMap", "create ServiceAccount"]
        assert writes(ground.asked) == [*made, "tell MPIJobCreated", "status"]

    def test_makes_no_other_plan_in_the_same_turn(self) -> None:
        ground = slow(takes=3)
        ground.answers["Create Pod"] = Refused("exceeded quota: pods", final=False)

        assert ground.look().result is Result.CHANGED

        assert len(ground.asked) == 1

    def test_is_retried_with_back_off_if_one_of_its_actions_has_failed(self) -> None:
        ground = slow()
        ground.answers["Create Pod elastic-worker-3"] = Unavailable("failed calling webhook", answered=True)

        assert ground.look().result is Result.FAILED


class TestAJobThatIsEditedWhileItsPlanIsCarriedOut:
    FIFTH = "elastic-worker-4"

    @pytest.mark.parametrize(
        "edit",
        [
            pytest.param({"generation": 2}, id="its spec"),
            pytest.param({"annotations": {SUSPENDED_ANNOTATION: "true"}}, id="an annotation"),
        ],
    )
    def test_gets_a_new_plan_at_once(self, edit: dict[str, Any]) -> None:
        ground = begun(60)
        ground.meanwhile[self.FIFTH] = partial(ground.edit, **edit)

        assert ground.look().result is Result.CHANGED

        assert len(created(ground)) == 5

    def test_creates_no_more_once_it_is_gone(self) -> None:
        ground = begun(60)
        ground.meanwhile[self.FIFTH] = partial(ground.lose, "TrainingJob")

        assert ground.look().result is Result.CHANGED

        assert len(created(ground)) == 5
        assert ground.look().result is Result.SETTLED

    def test_goes_on_if_nothing_but_its_status_was_written(self) -> None:
        ground = begun(60)
        ground.meanwhile[self.FIFTH] = ground.edit

        ground.look()

        assert len(created(ground)) == 60
