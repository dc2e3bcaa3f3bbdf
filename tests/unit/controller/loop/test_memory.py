"""What the loop remembers of a job between two looks, and when it forgets it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mpirt.controller.loop.reconcile import Result, resync
from mpirt.controller.model.actions import Create, Refused
from mpirt.controller.model.spec import JobKey
from tests.unit.controller.jobs import at, mpi_job
from tests.unit.controller.loop.ground import Ground, running
from tests.unit.controller.world import writes


def edited_again_and_again() -> Ground:
    """A job whose ConfigMap is changed by an autopilot, as often as it is changed back."""
    ground = running()
    rows = [{"manager": "autopilot", "time": "2026-01-01T12:00:00Z", "fieldsV1": {"f:data": {"f:hostfile": {}}}}]
    body = ground.known("ConfigMap")
    ground.there["ConfigMap", "train-config"] = {**body, "metadata": {**body["metadata"], "managedFields": rows}}
    # Who has just started knows of no edit before the first.
    ground.look()
    return ground


@pytest.fixture
def ground() -> Ground:
    """A job whose ConfigMap is changed as often as it is changed back."""
    return edited_again_and_again()


class TestAnEditThatComesAgainAndAgain:
    def test_an_edit_is_undone_at_once_and_then_with_growing_delays(self, ground: Ground) -> None:
        patched, agains = [], []
        for _ in range(4):
            turn = ground.look()
            patched.append("patch ConfigMap" in writes(ground.asked))
            turn = ground.look()
            assert "patch ConfigMap" not in writes(ground.asked)
            assert turn.again is not None
            agains.append((turn.again - at(ground.seconds)).total_seconds())
            ground.seconds += agains[-1]

        assert patched == [True] * 4
        assert agains == [1, 2, 4, 8]

    def test_an_event_names_the_field_manager_after_the_third_edit_and_only_then(self, ground: Ground) -> None:
        told = []
        for _ in range(5):
            ground.look(20)
            told.append([each for each in ground.asked if isinstance(each, Create) and each.once])

        assert [len(each) for each in told] == [0, 0, 1, 0, 0]
        [[event]] = [each for each in told if each]
        assert event.manifest["reason"] == "MPIJobEditUndone"
        assert "ConfigMap train-config: field manager autopilot changed /data, " in event.manifest["message"]

    def test_the_event_about_edits_is_made_although_the_object_can_not_be_read(self, ground: Ground) -> None:
        ground.there.clear()

        for _ in range(3):
            ground.look(20)

        assert "tell MPIJobEditUndone" in writes(ground.asked)

    def test_an_edit_that_has_to_wait_keeps_nothing_else_from_being_done(self, ground: Ground) -> None:
        ground.look()
        ground.lose("Role")

        ground.look()

        assert writes(ground.asked) == ["create Role"]

    def test_an_edit_that_has_to_wait_leaves_nothing_to_do_until_it_is_time(self, ground: Ground) -> None:
        ground.look()

        assert ground.look().result is Result.SETTLED


class TestAJobThatIsGone:
    def test_a_job_that_is_gone_leaves_nothing_behind(self) -> None:
        ground = running()
        ground.lend({"kind": "Service", "metadata": {"name": "x", "namespace": "ml"}})
        ground.lose_pod("train-worker-1")
        assert len(ground.remembered()) == 2
        ground.look()

        ground.lose("MPIJob")
        turn = ground.look()

        assert ground.remembered() == []
        assert (turn.result, turn.again) == (Result.SETTLED, None)

    def test_a_job_made_again_under_the_same_name_inherits_no_rejection(self) -> None:
        ground = Ground(mpi_job())
        ground.answers["Create Job"] = Refused("no", final=False)
        ground.look()
        ground.look()
        assert "try Job" not in writes(ground.asked)

        # Both events come before the next look.
        job = ground.known("MPIJob")
        ground.lose("MPIJob")
        ground.see({**job, "metadata": {**job["metadata"], "uid": "another", "resourceVersion": "99"}})
        ground.look()

        assert writes(ground.asked)[0] == "try Job"


class TestResync:
    def test_a_job_to_which_nothing_happens_is_looked_at_within_ten_minutes_and_nothing_is_asked(self) -> None:
        ground = running(edited=False)

        turn = ground.look(60)

        assert ground.asked == []
        assert turn.again is not None
        assert timedelta(minutes=7) <= turn.again - at(60) <= timedelta(minutes=10)

    def test_jobs_are_spread_over_three_minutes(self) -> None:
        times = [resync(JobKey("MPIJob", "ml", f"train-{number}")).total_seconds() for number in range(500)]

        assert max(times) <= 600
        assert all(sum(1 for each in times if int(each / 20) == slot) < 100 for slot in range(21, 30))
