"""What happened in a job is kept as data: it outlives pods, CRDs that drop it, and versions of the controller."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from mpirt.controller.model.attempts import (
    Attempt,
    Failure,
    History,
    How,
    PodEnd,
    Stop,
    dump_history,
    load_history,
    read_history,
    write_history,
)
from tests.unit.controller import pods
from tests.unit.controller.jobs import NOON, Body, at, container, mpi_job, template, time
from tests.unit.controller.world import World, started, writes

DEATH = PodEnd("train-worker-1", How.EXITED, "node-1", "worker", 137, "OOMKilled", "", at(18))
NEW = template(container("mpi", image="mpi:5"))
NEW_WORKER = template(container("worker", image="mpi:5"))
DEATH_ROW = {
    "pod": "train-worker-1",
    "how": "Exited",
    "reportedBy": "kubelet",
    "node": "node-1",
    "container": "worker",
    "reason": "OOMKilled",
    "code": 137,
    "time": time(18),
}


def runs(name: str, *, since: float) -> Body:
    """A launcher's pod that runs."""
    return pods.launcher(name, containers=[pods.running("mpi", since=since)])


def attempted(number: int, state: Callable[..., Body], *, skew: float = 0) -> Body:
    """The launcher's pod of that attempt, on a node whose clock is ahead by so much."""
    pod = state(f"train-launcher-{number}", since=10 * number + 2 + skew)
    pod["metadata"]["creationTimestamp"] = time(10 * number + 1)
    return pod


class TestAnAttempt:
    def test_that_ended_before_its_launcher_started_has_no_deaths(self) -> None:
        world = started()
        evicted = {"phase": "Failed", "conditions": {}, "reason": "Evicted", "message": "low on disk"}
        waits = [pods.waiting("mpi", "ContainerCreating")]
        dead = pods.worker(1, containers=[pods.restarted("worker", 137, "OOMKilled", at=24)])
        world.workers_are(pods.worker(0), dead)

        world.launcher_is(
            pods.failed_launcher(),
            pods.launcher("train-launcher-2", created=20, containers=waits, **evicted),
            failed=2,
        )
        world.later(15)

        last = world.attempts()[-1]
        assert (last["end"]["how"], "startTime" in last, "deaths" in last) == ("Evicted", False, False)

    def test_is_written_when_its_launcher_starts(self) -> None:
        world = started()

        [row] = world.attempts()
        assert row.pop("workers").startswith("2-")
        assert row == {
            "launcher": "train-launcher-1",
            "node": "node-1",
            "creationTime": time(10),
            "startTime": time(12),
            "beginTime": time(12),
        }

    def test_holds_the_workers_that_died_in_it(self) -> None:
        world = started()
        dead = pods.restarted("worker", 137, "OOMKilled", at=18)
        world.workers_are(pods.worker(0), pods.worker(1, containers=[dead]))

        world.settle()

        assert world.attempts()[0]["deaths"] == [DEATH_ROW]

    def test_does_not_hold_a_death_of_the_one_before_that_was_in_the_second_of_its_begin(self) -> None:
        world = started()
        dead = pods.restarted("worker", 137, "OOMKilled", at=18)
        world.workers_are(pods.worker(0), pods.worker(1, containers=[dead]))
        world.launcher_is(pods.failed_launcher(at=18), failed=1)
        world.later(15)

        # No controller ran meanwhile: there is no digest of the workers at its begin.
        done = pods.ended("mpi", 0, "Completed", since=18, at=19)
        second = pods.launcher("train-launcher-2", created=17, phase="Succeeded", conditions={}, containers=[done])
        world.launcher_is(second, succeeded=1)
        world.finish(succeeded=1)

        assert [one.get("deaths") for one in world.attempts()] == [[DEATH_ROW], None]
        assert world.state() == "Succeeded"

    def test_holds_the_end_of_its_launcher_with_the_last_lines(self) -> None:
        world = started()
        world.launcher_is(pods.failed_launcher(code=205, message="step 7\nmpirt-rsh: worker is gone"), failed=1)

        world.settle()

        assert world.attempts()[0]["end"] == {
            "pod": "train-launcher-1",
            "how": "Exited",
            "reportedBy": "kubelet",
            "node": "node-1",
            "container": "mpi",
            "reason": "Error",
            "message": "mpirt-rsh: worker is gone\nstep 7",
            "code": 205,
            "time": time(18),
        }

    @pytest.mark.parametrize(
        ("change", "stopped"),
        [
            pytest.param({"launcher": NEW}, "LauncherTemplateChanged", id="launcher"),
            pytest.param({"worker": NEW_WORKER}, "WorkerTemplateChanged", id="workers"),
            pytest.param({"runPolicy": {"suspend": True}}, "Suspended", id="suspended"),
        ],
    )  # fmt: skip
    def test_tells_what_stopped_it_on_purpose(self, change: Body, stopped: str) -> None:
        world = started()

        world.change(**mpi_job(**change)["spec"])
        world.settle()

        assert world.attempts()[0]["stopped"] == stopped
        assert "deaths" not in world.attempts()[0]

    @pytest.mark.parametrize(
        ("name", "told"), [pytest.param("worker", True, id="main"), pytest.param("shipper", False, id="shipper")]
    )
    def test_holds_what_died_in_it_late_by_its_main_container_only_also_while_the_spec_is_invalid(
        self, name: str, *, told: bool
    ) -> None:
        world = started(worker=template(container("worker"), container("shipper")))
        second = pods.launcher("train-launcher-2", created=19, containers=[pods.running("mpi", since=20)])
        world.launcher_is(pods.failed_launcher(at=18), second, failed=1, active=1)
        world.change(slotsPerWorker="many")
        world.later(5)
        dead = pods.restarted(name, 137, "OOMKilled", at=17)
        idle = pods.running("shipper" if name == "worker" else "worker", since=10)
        world.workers_are(pods.worker(0), pods.worker(1, containers=[dead, idle]))

        world.later(5)
        world.change(slotsPerWorker=1)
        world.later(5)

        assert ("deaths" in world.attempts()[0]) is told

    def test_of_a_launcher_that_is_gone_without_a_word_ends_so(self) -> None:
        world = started()
        world.launcher_is()

        world.later(5)

        assert world.attempts()[0]["end"] == {
            "pod": "train-launcher-1",
            "how": "Gone",
            "reportedBy": "mpirt-controller",
            "time": time(world.seconds),
        }

    def test_is_over_by_its_nodes_loss_only_until_the_node_is_heard_of_again(self) -> None:
        world = started()
        launcher = pods.launcher(containers=[pods.running("mpi", since=12)])
        lost = copy.deepcopy(launcher) | {"status": {**launcher["status"], "conditions": _rows(pods.lost(20))}}
        world.launcher_is(lost, active=1)
        world.later(120)
        there = pods.launcher(containers=[pods.running("mpi", since=12)])

        world.launcher_is(there, active=1)
        world.later(30)

        assert "end" not in world.attempts()[0]

    def test_takes_an_eviction_for_the_better_word_than_a_deletion(self) -> None:
        world = started()
        world.launcher_is(pods.launcher(deleted=30, containers=[pods.running("mpi", since=12)]), active=1)
        world.settle()
        assert world.attempts()[0]["end"]["how"] == "Deleted"

        world.launcher_is(pods.launcher(deleted=30, phase="Failed", reason="Evicted", message="disk"), failed=1)
        world.later(15)

        assert world.attempts()[0]["end"]["how"] == "Evicted"

    def test_is_none_of_a_pod_that_a_previous_job_of_the_name_has_left(self) -> None:
        world = World()
        left = pods.launcher(created=-30, owner="uid-of-another-Job", containers=[pods.running("mpi", since=-20)])
        world.put(left)

        world.settle()

        assert world.attempts() == []


@pytest.mark.uncounted
class TestItsSize:
    @pytest.mark.parametrize(
        "skew", [pytest.param(0, id="right"), pytest.param(3600, id="ahead"), pytest.param(-3600, id="behind")]
    )
    def test_the_last_attempts_are_kept_and_the_others_counted_whatever_the_clocks_of_nodes(
        self, skew: float
    ) -> None:
        world = started(runPolicy={"backoffLimit": 20})
        for number in range(1, 9):
            world.seconds = 10 * number + 2
            ended = [attempted(n, pods.failed_launcher, skew=skew) for n in range(1, number)]
            world.launcher_is(*ended, attempted(number, runs, skew=skew), active=1, failed=number - 1)
            world.settle()

        names = [row["launcher"] for row in world.attempts()]
        assert names == [f"train-launcher-{n}" for n in range(4, 9)]
        assert world.job["status"]["attemptsForgotten"] == 3

    def test_a_forgotten_attempt_stays_so_though_the_pods_of_the_last_ones_are_gone(self) -> None:
        world = started(runPolicy={"backoffLimit": 20})
        for number in range(1, 9):
            world.seconds = 10 * number + 2
            world.launcher_is(
                *(attempted(n, pods.failed_launcher, skew=-3600) for n in range(1, number + 1)), failed=number
            )
            world.settle()

        world.launcher_is(attempted(1, pods.failed_launcher), attempted(9, runs), active=1, failed=8)
        world.settle()

        names = [row["launcher"] for row in world.attempts()]
        assert names == [f"train-launcher-{n}" for n in range(5, 10)]

    def test_the_first_deaths_are_kept_and_the_others_counted(self) -> None:
        world = started(elastic={"minReplicas": 2}, replicas=30)
        dead = [pods.restarted("worker", 137, "OOMKilled", at=18)]
        world.workers_are(*(pods.worker(n, containers=dead, conditions=pods.not_ready()) for n in range(30)))

        world.settle()
        world.later(60)

        assert len(world.attempts()[0]["deaths"]) == 10
        assert world.attempts()[0]["moreDeaths"] == 20
        assert world.condition("Running")[2].endswith("; and 27 more")

    def test_last_lines_have_a_limit(self) -> None:
        world = started()
        world.launcher_is(pods.failed_launcher(message="x" * 100_000), failed=1)

        world.settle()

        assert len(world.attempts()[0]["end"]["message"]) == 2048


class TestWritingItDown:
    HISTORY = History(
        (
            Attempt("train-launcher-1", "node-1", NOON, None, Stop.SUSPENDED, (DEATH,), 3, NOON, "2-0123abcd"),
            Attempt("train-launcher-2", ended=PodEnd("train-launcher-2", How.GONE), created=NOON),
        ),
        forgotten=2,
        rerun="1",
        failure=Failure("uid-of-Job", 3, at(7), final=True, lost=True),
    )

    def test_it_is_read_back_as_it_was_written(self) -> None:
        read = read_history(write_history(self.HISTORY))

        assert read == self.HISTORY
        assert [one.created for one in read.attempts] == [None, NOON]
        assert load_history(dump_history(self.HISTORY)) == self.HISTORY

    @pytest.mark.parametrize("written", ["", "no JSON", "[]", "7", "{}", '{"attempts": 7}'])
    def test_what_is_none_is_none(self, written: str) -> None:
        assert load_history(written) is None

    def test_words_of_a_later_version_are_read_as_far_as_they_are_known(self) -> None:
        row = {"launcher": "l", "stopped": "Later", "end": {"pod": "l", "how": "Vaporized"}}

        read = read_history({"attempts": [row]})

        assert read == History((Attempt("l", ended=PodEnd("l", How.GONE)),))


def _rows(conditions: dict[str, Any]) -> list[Body]:
    return [
        {"type": kind, **(value if isinstance(value, dict) else {"status": value})}
        for kind, value in conditions.items()
    ]


def test_an_attempt_without_the_creation_time_of_its_pod_gets_it_with_the_next_news() -> None:
    world = started()
    del world.attempts()[0]["creationTime"]

    assert writes(world.later(60)) == []
    world.launcher_is(pods.failed_launcher(), failed=1)
    world.later(15)
    assert world.attempts()[0]["creationTime"] == time(10)
