"""A launcher that has ended with code 0 is not believed if a worker was lost while it ran."""

from __future__ import annotations

import pytest

from mpirt.account import Account, Lost, write
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, mpi_job
from tests.unit.controller.world import World, with_workers, writes

TOLERATES = {"mpirt.dev/tolerates-lost-workers": "true"}
DELETED = "train-worker-1 was deleted"
NO_SUCCESS = "launcher pod train-launcher-1 ended with code 0 all the same, which does not count as a success"


def status_of(world: World) -> Body:
    found: Body = world.job["status"]
    return found


def successor() -> Body:
    """Another pod of the name of worker 1."""
    body = pods.worker(1, created=16, containers=[pods.running("worker", since=17)])
    body["metadata"]["uid"] = "uid-of-another"
    return body


def started_again(code: int) -> Body:
    """Worker 1, whose container has ended and was started again."""
    return pods.worker(1, containers=[pods.restarted("worker", code, at=16)])


def running(job: Body | None = None) -> World:
    world = World(job or mpi_job(runPolicy={"backoffLimit": 2}))
    world.start()
    return world


def loses(world: World, worker: Body) -> None:
    """Worker 1 is lost, and this is what has its name then."""
    world.workers_are(pods.worker(0), worker)
    world.settle()


def ends(world: World, launcher: str = "train-launcher-1", *, message: str = "", believed: bool = False) -> None:
    """The launcher ends with code 0, and its Job is Complete."""
    done = pods.ended("mpi", 0, "Completed", at=world.seconds, message=message)
    body = pods.launcher(launcher, phase="Succeeded", conditions={}, containers=[done], created=world.seconds - 9)
    world.launcher_is(body, active=1)
    world.seconds += 1
    row = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "Reached"}
    world.get("Job")["status"] = {"conditions": [row], "succeeded": 1}
    if believed:
        world.later(3)


def test_a_worker_that_ended_before_the_attempt_is_no_loss_whatever_the_clock_of_its_node_says() -> None:
    world = with_workers(pods.worker(0), started_again(1), job=mpi_job(runPolicy={"backoffLimit": 2}))
    world.settle()
    world.seconds = 15
    world.launcher_is(pods.launcher(containers=[pods.running("mpi", since=12)]), active=1)
    world.settle()

    ends(world)
    world.later(3)

    assert world.state() == "Succeeded"


class TestAnAttemptThatHasLostAWorker:
    @pytest.mark.parametrize("worker", [successor(), started_again(0), started_again(143)])
    def test_has_failed_and_is_tried_again(self, worker: Body) -> None:
        world = running()
        loses(world, worker)
        ends(world)

        done = world.later(3)

        assert "delete Job" in writes(done)
        assert world.state() == "Restarting"
        assert world.condition("Restarting")[1] == "WorkerLost"
        assert NO_SUCCESS in world.condition("Restarting")[2]
        assert "Succeeded" not in [row["type"] for row in status_of(world)["conditions"]]
        assert ("Job", "train-launcher") in world.objects
        assert world.get("Job")["metadata"]["uid"] == "uid-of-Job-2"

    def test_is_judged_at_once_if_the_loss_is_known(self) -> None:
        world = running()
        world.worker_went(pods.worker(1, deleted=15))
        loses(world, successor())
        ends(world)

        world.settle()

        assert world.condition("Restarting")[2].startswith(f"{DELETED}; {NO_SUCCESS}")
        assert 'annotate it with mpirt.dev/tolerates-lost-workers: "true"' in world.condition("Restarting")[2]

    def test_has_failed_though_nobody_saw_the_loss(self) -> None:
        """No controller ran when the worker was lost and the launcher ended: another pod has its name."""
        world = running()
        world.workers_are(pods.worker(0), successor())
        ends(world)

        world.later(60)

        assert world.condition("Restarting")[1] == "WorkerLost"
        assert "a worker was lost while the launcher ran" in world.condition("Restarting")[2]

    def test_counts_like_any_other_failure(self) -> None:
        world = running()
        for number in (1, 2, 3):
            if number > 1:
                world.later(10)
                again = pods.launcher(
                    f"train-launcher-{number}",
                    created=world.seconds,
                    owner=world.get("Job")["metadata"]["uid"],
                    containers=[pods.running("mpi", since=world.seconds + 1)],
                )
                world.launcher_is(again, active=1)
                world.later(5)
                assert world.state() == "Running"
            body = pods.worker(1, containers=[pods.running("worker", since=world.seconds)])
            loses(world, body)
            ends(world, f"train-launcher-{number}")
            world.later(3)

        assert world.state() == "Failed"
        status, reason, message = world.condition("Failed")
        assert (status, reason) == (True, "WorkerLost")
        assert "launcher pod train-launcher-3 ended with code 0 all the same" in message
        counts = status_of(world)["replicaStatuses"]["Launcher"]
        assert (counts["succeeded"], counts["failed"]) == (0, 3)
        assert [row["stopped"] for row in status_of(world)["attempts"]] == ["WorkerLost"] * 3
        assert world.later(60) == []

    def test_is_written_down_before_its_launcher_job_is_deleted(self) -> None:
        world = running()
        loses(world, successor())
        ends(world)
        world.seconds += 3

        first = writes(world.plan().actions)

        assert "status" in first
        assert "delete Job" not in first

    def test_has_failed_though_its_spec_is_invalid_by_then(self) -> None:
        world = running()
        world.worker_went(pods.worker(1, deleted=15))
        loses(world, successor())
        world.change(slotsPerWorker=-1)
        ends(world)

        world.later(3)

        assert "Succeeded" not in [row["type"] for row in status_of(world)["conditions"]]
        assert status_of(world)["failedLauncher"]["count"] == 1

    def test_by_the_word_of_mpirt_rsh(self) -> None:
        world = running()

        ends(world, message=write(Account((Lost("train-worker-0", 250),))))
        world.later(3)

        assert world.condition("Restarting")[2].startswith("train-worker-0 was lost to mpirt-rsh (code 250); ")
        assert status_of(world)["attempts"][0]["deaths"] == [
            {"pod": "train-worker-0", "how": "CutOff", "reportedBy": "mpirt-rsh", "code": 250}
        ]


class TestALauncherIsBelieved:
    @pytest.mark.parametrize(
        ("account", "patience"),
        [
            pytest.param(Account(is_settled=True), 0, id="at once: all its commands have ended"),
            pytest.param(Account(), 3, id="when nodes have had the time to report a loss"),
            pytest.param(Account(silent=("train-worker-1",)), 30, id="later: a connection was lost"),
        ],
    )
    def test_if_no_loss_is_reported_in_time(self, account: Account, patience: float) -> None:
        world = running()
        ends(world, message=write(account))
        if patience:
            # It ended a second ago.
            world.later(patience - 2)
            assert world.state() == "Running"

        world.later(1 if patience else 0)

        assert world.state() == "Succeeded"

    @pytest.mark.parametrize(
        ("again", "state"),
        [
            ({"train-worker-1": "000017"}, "Succeeded"),
            ({"train-worker-0": "000017"}, "Restarting"),
            ({"train-worker-1": "000002"}, "Restarting"),
        ],
    )
    def test_only_if_its_last_commands_ran_in_the_workers_that_exist_now(
        self, again: dict[str, str], state: str
    ) -> None:
        world = running()
        world.worker_went(pods.worker(1, deleted=15))
        loses(world, successor())

        ends(world, message=write(Account(again=again)), believed=True)

        assert world.state() == state

    def test_at_once_if_nothing_says_when_it_ended(self) -> None:
        world = running()
        world.launcher_is()
        row = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "Reached"}
        world.get("Job")["status"] = {"conditions": [row], "succeeded": 1}

        world.settle()

        assert world.state() == "Succeeded"

    @pytest.mark.parametrize(
        ("account", "state"),
        [
            pytest.param(Account(), "Succeeded", id="no command ran in them"),
            pytest.param(Account(silent=("train-worker-1",)), "Restarting", id="a command ran in one"),
        ],
    )
    def test_if_only_workers_are_gone_that_were_to_go(self, account: Account, state: str) -> None:
        world = running()
        world.change(mpiReplicaSpecs=mpi_job(replicas=1)["spec"]["mpiReplicaSpecs"])
        world.settle()
        assert status_of(world)["attempts"][0]["workers"].startswith("1-")
        world.workers_are(pods.worker(0))
        world.settle()

        ends(world, message=write(account))
        world.later(30)

        assert world.state() == state

    def test_not_if_a_worker_was_lost_before_others_were_to_go(self) -> None:
        world = running()
        world.workers_are(
            pods.worker(0, containers=[pods.running("worker", since=17)], created=16), pods.worker(1)
        )
        world.change(mpiReplicaSpecs=mpi_job(replicas=1)["spec"]["mpiReplicaSpecs"])
        world.settle()

        ends(world)
        world.later(3)

        assert world.condition("Restarting")[1] == "WorkerLost"

    @pytest.mark.parametrize(
        ("annotations", "spec"),
        [
            pytest.param(TOLERATES, {}, id="the job copes with losses"),
            pytest.param({}, {"elastic": {"minReplicas": 1}}, id="the job is elastic"),
        ],
    )
    def test_if_a_loss_does_not_matter(self, annotations: Body, spec: Body) -> None:
        job = mpi_job(**spec)
        job["metadata"]["annotations"] = annotations
        world = running(job)
        loses(world, successor())

        ends(world)
        world.settle()

        assert world.state() == "Succeeded"

    def test_if_the_worker_was_lost_before_it_began(self) -> None:
        world = with_workers(pods.worker(0), started_again(137), job=mpi_job())
        world.later(5)
        world.launcher_is(pods.launcher(containers=[pods.running("mpi", since=18)]), active=1)
        world.later(10)

        ends(world, believed=True)

        assert world.state() == "Succeeded"

    def test_if_a_worker_is_lost_after_its_end_was_told(self) -> None:
        world = running()
        ends(world, believed=True)

        loses(world, successor())

        assert world.state() == "Succeeded"
