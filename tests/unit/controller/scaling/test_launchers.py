"""The launchers of TrainingJobs: how long they may be waited for, and when they see other hosts."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mpirt.controller.dialects.training_job import SUSPENDED_ANNOTATION
from mpirt.controller.model.actions import Action, Rejection
from mpirt.controller.model.objectnames import GAVE_UP_ANNOTATION, HOSTS_ANNOTATION, PATIENCE_ANNOTATION
from mpirt.controller.model.reading import digest
from tests.unit.controller.trainings import TrainingWorld, training_job
from tests.unit.controller.world import writes


@pytest.mark.uncounted
class TestTheFilesOfTheLauncher:
    """Kubernetes brings them up to date when the pod changes."""

    @pytest.fixture
    def world(self) -> TrainingWorld:
        world = TrainingWorld()
        world.run()
        return world

    def seen(self, world: TrainingWorld) -> str:
        """The list of hosts that the launcher was given last."""
        found: str = world.pod("elastic-launcher-1")["metadata"]["annotations"][HOSTS_ANNOTATION]
        return found

    def changes(self, actions: list[Action]) -> list[str]:
        return [f"{what} {action.name}" for what, action in zip(writes(actions), actions, strict=True)]

    def test_the_pod_is_changed_after_the_list_of_hosts(self, world: TrainingWorld) -> None:
        first = self.seen(world)

        done = self.changes(world.scale(3))

        config, launcher = "patch ConfigMap elastic-config", "patch Pod elastic-launcher-1"
        assert done.index(config) < done.index(launcher)
        assert (done.count(config), done.count(launcher)) == (1, 1)
        assert self.seen(world) != first

    def test_another_attempt_that_starts_with_an_old_list_is_given_the_new_one(self, world: TrainingWorld) -> None:
        world.scale(3)
        seen = self.seen(world)

        world.launcher_fails()
        world.launcher_starts("elastic-launcher-2")

        assert world.pod("elastic-launcher-2")["metadata"]["annotations"][HOSTS_ANNOTATION] == seen

    def test_a_launcher_that_is_over_is_left_alone(self, world: TrainingWorld) -> None:
        world.launcher_fails()

        assert "patch Pod elastic-launcher-1" not in self.changes(world.scale(3))

    def test_a_launcher_of_an_earlier_version_is_left_alone(self, world: TrainingWorld) -> None:
        del world.pod("elastic-launcher-1")["metadata"]["annotations"][HOSTS_ANNOTATION]

        assert "patch Pod elastic-launcher-1" not in self.changes(world.scale(3))

    def test_a_change_that_was_refused_is_not_tried_again_at_once(self, world: TrainingWorld) -> None:
        world.rejections.append(Rejection("Pod", digest(HOSTS_ANNOTATION), "no", final=False))

        assert "patch Pod elastic-launcher-1" not in self.changes(world.scale(3))


class TestPatience:
    JOB = training_job(annotations={PATIENCE_ANNOTATION: "600"})

    @pytest.fixture
    def world(self) -> TrainingWorld:
        world = TrainingWorld(deepcopy(self.JOB))
        world.settle()
        return world

    def said(self, world: TrainingWorld) -> str | None:
        """What Arena reads."""
        found: str | None = world.job["metadata"]["annotations"].get(GAVE_UP_ANNOTATION)
        return found

    def test_a_job_whose_workers_do_not_come_in_time_has_failed(self, world: TrainingWorld) -> None:
        world.ready("elastic-worker-0")
        world.later(599)
        assert world.status["phase"] == "Created"

        done = world.later(1)

        assert writes(done)[:2] == ["patch TrainingJob", "tell MaxWaitTimeExceeded"]
        assert world.status["phase"] == "Failed"
        waited = f"the job waited longer than {PATIENCE_ANNOTATION}=600 for its workers"
        ready = "1 of 2 workers are Ready: elastic-worker-1 is waiting for a node"
        assert world.condition("Failed") == (True, "MaxWaitTimeExceeded", f"{waited}; {ready}")
        assert self.said(world) == "timeout"
        assert world.workers() == []
        assert writes(world.later(10)) == ["status"]
        assert world.later(3600) == []

    def test_a_job_that_has_run_waits_as_long_again(self, world: TrainingWorld) -> None:
        world.ready()
        world.settle()
        world.launcher_starts()
        world.later(3000)
        assert world.status["phase"] == "Running"

        world.lose_launcher_job()
        world.objects.pop(("Pod", "elastic-launcher-1"))
        for name in world.workers():
            world.vanishes(name)
        world.settle()

        assert world.later(599) is not None
        assert world.status["phase"] == "Created"
        world.later(1)
        assert world.status["phase"] == "Failed"

    def test_a_suspended_job_does_not_wait(self, world: TrainingWorld) -> None:
        world.job["metadata"]["annotations"][SUSPENDED_ANNOTATION] = "true"
        world.later(3600)

        assert world.status["phase"] == "Suspended"
        assert self.said(world) is None

    def test_another_run_has_not_given_up(self, world: TrainingWorld) -> None:
        world.later(600)
        world.job["metadata"]["annotations"]["mpirt.dev/rerun"] = "1"
        world.settle()

        assert self.said(world) is None
        assert world.status["phase"] == "Created"

    def test_without_the_annotation_it_waits_for_ever(self) -> None:
        world = TrainingWorld()
        world.settle()
        world.later(1_000_000)

        assert world.status["phase"] == "Created"
