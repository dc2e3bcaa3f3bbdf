"""Workers of a TrainingJob that can't be created: what the API server is asked, and when the job reports it."""

from __future__ import annotations

from mpirt.controller.loop.reconcile import Result
from mpirt.controller.model.actions import Exists, Refused
from tests.support import sizes
from tests.unit.controller.loop.ground import Ground, begun, created
from tests.unit.controller.world import writes

QUOTA = "exceeded quota: few, requested: pods=1, used: pods=4, limited: pods=4"


def stranger(ground: Ground, name: str) -> None:
    """A pod of that name is there, and nobody's."""
    ground.answers[f"Create Pod {name}"] = Exists()
    metadata = {"name": name, "namespace": "ml", "uid": f"uid-of-{name}", "resourceVersion": "7"}
    ground.there["Pod", name] = {"kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": "Running"}}


class TestAQuota:
    def test_is_reported_in_the_turn_in_which_it_is_learnt(self) -> None:
        ground = begun(60)
        ground.answers["Create Pod"] = Refused(QUOTA, final=False)

        ground.look()

        assert created(ground) == ["elastic-worker-0"]
        assert ground.status()["Running"] == (
            "False",
            "TrainingJobRefused",
            f"0 of 60 workers are Ready: elastic-worker-0 and 59 more can't be created: {QUOTA}",
        )

    def test_is_asked_again_once_for_all_workers_with_growing_delays(self) -> None:
        ground = begun(sizes.of(merge=12, full=60))
        ground.answers["Create Pod"] = Refused(QUOTA, final=False)
        asked = []
        for second in range(0, 1500, 5):
            ground.look(5)
            asked += [second for _ in created(ground)]

        assert asked == [0, 30, 90, 210, 450, 930]

    def test_that_has_room_for_some_lets_these_be_created(self) -> None:
        ground = begun(60)
        ground.answers["Create Pod"] = Refused(QUOTA, final=False)
        ground.look()
        ground.answers.clear()

        ground.look(30)

        assert len(created(ground)) == 60


class TestAPodThatHasTheNameOfAWorker:
    def test_is_reported_in_the_turn_in_which_it_is_found_and_the_others_are_created(self) -> None:
        ground = begun(3)
        stranger(ground, "elastic-worker-1")

        ground.look()

        assert created(ground)[-1] == "elastic-worker-2"
        assert ground.status()["Running"][1] == "ErrResourceExists"

    def test_is_looked_for_again_after_half_a_minute_without_a_write(self) -> None:
        ground = begun(3)
        stranger(ground, "elastic-worker-1")
        ground.look()
        job = ground.known("TrainingJob")
        newer = {**job["metadata"], "resourceVersion": "99"}
        ground.see({**job, "metadata": newer, "status": ground.written()})

        turn = ground.look(29)
        assert "elastic-worker-1" not in created(ground)
        assert turn.again is not None
        ground.look(2)

        assert "elastic-worker-1" in created(ground)
        assert "status" not in writes(ground.asked)

    def test_does_not_use_up_the_turns_of_a_job_however_many_there_are(self) -> None:
        ground = begun(50)
        for number in range(50):
            stranger(ground, f"elastic-worker-{number}")

        assert ground.look().result is Result.CHANGED

        assert len(created(ground)) == 50
        assert "and 47 more" in ground.status()["Running"][2]

    def test_that_is_gone_before_it_can_be_read_is_no_obstacle(self) -> None:
        ground = begun(1)
        ground.answers["Create Pod elastic-worker-0"] = Exists()

        assert ground.look().result is Result.FAILED

        assert writes(ground.asked) == ["create Pod"]
