"""What becomes of a plan when the API server doesn't do all of it."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.loop.reconcile import Reconciler, Result, Turn
from mpirt.controller.model.actions import Action, Create, Delete, Patch, WriteStatus
from mpirt.controller.model.outcomes import Done, Exists, Failed, Outcome, Refused
from mpirt.controller.model.reading import Body
from mpirt.controller.model.spec import JobKey
from mpirt.controller.monitoring.logs import LineLog, logfmt
from mpirt.controller.monitoring.metrics import Metrics
from mpirt.controller.observed.store import Store
from tests.unit.controller.jobs import SETTINGS, UID, at, mpi_job, time
from tests.unit.controller.world import World

KEY = JobKey("ml", "train")


class Ground:
    """A controller's loop, and an API server that answers as it is told to."""

    def __init__(self, *bodies: Body) -> None:
        self.seconds = 0.0
        self.answers: dict[str, Outcome] = {}
        """By the kind of action, or of object, what is not simply done."""
        self.asked: list[Action] = []
        self.unlabelled: dict[str, Body] = {}
        """By kind and name: what exists, and what no watch brings."""
        self.metrics = Metrics()
        self._store = Store("MPIJob", clock=self._clock)
        self._reconciler = Reconciler(
            MPI_JOB,
            SETTINGS,
            store=self._store,
            cluster=self,
            log=LineLog(io.StringIO(), logfmt, lambda: datetime.now(UTC)),
            witness=self.metrics,
            clock=self._clock,
            heard=lambda: at(-3600),
            may_act=lambda: True,
        )
        for number, body in enumerate(bodies, 1):
            self.see({**body, "metadata": {**body["metadata"], "resourceVersion": str(number)}})

    def see(self, body: Body) -> None:
        self._store.put(body["kind"], body)

    def look(self, seconds: float = 0.0) -> Turn:
        """So much later."""
        self.seconds += seconds
        self.asked.clear()
        return self._reconciler.look(KEY)

    def status(self) -> dict[str, Any]:
        """Condition, reason and message that were written in the last look, by type."""
        [written] = [action.status for action in self.asked if isinstance(action, WriteStatus)]
        return {each["type"]: (each["status"], each["reason"], each["message"]) for each in written["conditions"]}

    def carry_out(self, action: Action, key: JobKey) -> Outcome:
        assert key == KEY
        self.asked.append(action)
        kind = "status" if isinstance(action, WriteStatus) else action.kind
        return self.answers.get(f"{type(action).__name__} {kind}", Done())

    def read(self, kind: str, namespace: str, name: str) -> Body | None:
        assert self.unlabelled, f"nothing exists, but {kind} {namespace}/{name} was asked for"
        return self.unlabelled.get(f"{kind} {name}")

    def _clock(self) -> datetime:
        return at(self.seconds)


def ended() -> Ground:
    """A job that has just ended, and whose workers are to go."""
    world = World(mpi_job(runPolicy={"cleanPodPolicy": "Running"}))
    world.start()
    job = world.get("Job")
    job["status"] = {
        "succeeded": 1,
        "completionTime": time(30),
        "conditions": [{"type": "Complete", "status": "True"}],
    }
    assert world.job is not None
    return Ground(world.job, *world.objects.values())


class TestAWebhookThatIsDown:
    SAID = 'Internal error occurred: failed calling webhook "policy.example.com": connection refused'

    def test_is_told_of_when_it_stays_down(self) -> None:
        ground = Ground(mpi_job())
        ground.answers["Create Job"] = Failed(self.SAID, answered=True)
        assert [ground.look(10).result for _ in range(3)] == [Result.FAILED] * 3
        assert [action.why for action in ground.asked] == ["would its pods be taken?"]

        turn = ground.look()

        assert turn.again == at(60)
        assert [type(action) for action in ground.asked] == [Create, Create, WriteStatus]
        assert ground.status()["Running"] == (
            "False",
            "MPIJobRefused",
            f"the API server refuses Job: {self.SAID}",
        )

    def test_is_asked_again_after_half_a_minute_and_forgotten_when_it_is_back(self) -> None:
        ground = Ground(mpi_job())
        ground.answers["Create Job"] = Failed(self.SAID, answered=True)
        for _ in range(3):
            ground.look(10)
        ground.answers.clear()
        ground.look(30)
        assert "ConfigMap" in {action.kind for action in ground.asked if isinstance(action, Create)}

        ground.answers["Create Job"] = Failed(self.SAID, answered=True)

        assert ground.look(10).result is Result.FAILED
        assert [action.why for action in ground.asked] == ["would its pods be taken?"]

    def test_a_server_that_does_not_answer_is_no_matter_of_the_jobs(self) -> None:
        ground = Ground(mpi_job())
        ground.answers["Create Job"] = Failed("no answer within 5 s")

        assert [ground.look(10).result for _ in range(9)] == [Result.FAILED] * 9
        assert len(ground.asked) == 1


class TestTheEndIsTold:
    def test_though_the_workers_may_not_be_deleted(self) -> None:
        for no in (Refused("protected", final=False), Failed("failed calling webhook", answered=True)):
            ground = ended()
            ground.answers["Delete StatefulSet"] = no

            assert ground.look(40).result is Result.FAILED

            assert ground.status()["Succeeded"][0] == "True"

    def test_though_no_more_events_are_taken(self) -> None:
        ground = ended()
        ground.answers["Create Event"] = Refused("exceeded quota: count/events", final=False)

        assert ground.look(40).result is Result.FAILED

        assert ground.status()["Succeeded"][0] == "True"

    def test_later_if_the_server_does_not_answer(self) -> None:
        ground = ended()
        ground.answers["Delete StatefulSet"] = Failed("no answer within 5 s")

        assert ground.look(40).result is Result.FAILED

        assert [type(action) for action in ground.asked] == [Delete]


class TestWhatAnotherControllerHasMade:
    """It carries no label of ours: only its name in our way tells of it."""

    @staticmethod
    def ground(**status: Any) -> Ground:
        owner = {"kind": "MPIJob", "name": "train", "uid": UID, "controller": True}

        def head(name: str) -> Body:
            return {"name": name, "namespace": "ml", "uid": f"uid-of-{name}", "ownerReferences": [owner]}

        ground = Ground(mpi_job(runPolicy={"managedBy": "mpirt.dev/controller"}))
        ground.answers["Create ConfigMap"] = Exists()
        ground.unlabelled = {
            "ConfigMap train-config": {"kind": "ConfigMap", "metadata": head("train-config"), "data": {}},
            "Job train-launcher": {
                "kind": "Job",
                "metadata": head("train-launcher"),
                "spec": {},
                "status": status,
            },
        }
        return ground

    def test_is_looked_at_as_a_whole_before_anything_is_done_about_it(self) -> None:
        ground = self.ground(active=1)
        assert ground.look().result is Result.CHANGED

        assert ground.look().result is Result.SETTLED
        assert ground.asked == []

    def test_is_out_of_the_way_as_soon_as_it_is_deleted(self) -> None:
        ground = self.ground()
        ground.look()

        ground.look()
        assert [action.name for action in ground.asked if isinstance(action, Delete)] == ["train-launcher"]

        ground.look()
        assert [action.name for action in ground.asked if isinstance(action, Patch)] == ["train-config"]

    def test_may_lack_a_launcher_job(self) -> None:
        ground = self.ground()
        del ground.unlabelled["Job train-launcher"]
        ground.look()

        ground.look()

        assert [action.name for action in ground.asked if isinstance(action, Patch)] == ["train-config"]
