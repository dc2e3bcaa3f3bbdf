"""What only events say about pods: those that can't be created, and those that were evicted."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.model.spec import JobKey
from mpirt.controller.observed.pods import event_job, read_failed_create, read_pod, why_not_created
from tests.unit.controller import pods
from tests.unit.controller.jobs import Body, mpi_job, time
from tests.unit.controller.world import RUNS, settled, started, with_workers, writes

WORKERS, LAUNCHER = ("StatefulSet", "train-worker"), ("Job", "train-launcher")
WORKERS_NOT_READY = (False, "MPIJobWorkersNotReady")
QUOTA = "forbidden: exceeded quota: few, requested: pods=1, used: pods=4, limited: pods=4"


def of_worker(ordinal: int, answer: str = QUOTA) -> str:
    """As a StatefulSet says it."""
    name = f"train-worker-{ordinal}"
    return f'create Pod {name} in StatefulSet train-worker failed error: pods "{name}" is {answer}'


def of_launcher(answer: str = QUOTA) -> str:
    """As a Job says it."""
    return f'Error creating: pods "train-launcher-x7k2p" is {answer}'


def failed_create(about: tuple[str, str], message: str, *, at: float = 20, name: str = "1", **more: Any) -> Body:
    kind, of = about
    return {
        "kind": "Event",
        "metadata": {"name": f"{of}.{name}", "namespace": "ml", "uid": name, "resourceVersion": "7"},
        "involvedObject": {"kind": kind, "name": of, "namespace": "ml", "uid": f"uid-of-{kind}"},
        "reason": "FailedCreate",
        "message": message,
        "lastTimestamp": time(at),
        **more,
    }


def why(*events: Body, name: str = "Pod train-worker-1 ", made: tuple[Body, ...] = ()) -> str:
    found = [read_failed_create(one) for one in events]
    return why_not_created(found, "uid-of-StatefulSet", [read_pod(one) for one in made], name)


PASSES = failed_create(
    WORKERS,
    "create Pod train-worker-1 in x failed error: "
    "The POST operation against Pod could not be completed at this time, please try again.",
    at=30,
    name="2",
)
LATER = failed_create(WORKERS, of_worker(1, "forbidden: later"), at=30, name="2")


class TestWhyAPodCantBeMade:
    @pytest.mark.parametrize(
        ("events", "reason"),
        [
            pytest.param([failed_create(WORKERS, of_worker(1))], QUOTA, id="the API server's words"),
            pytest.param(
                [failed_create(WORKERS, f"(combined from similar events): {of_worker(1)}.")],
                QUOTA,
                id="many",
            ),
            pytest.param(
                [failed_create(WORKERS, "no Pod train-worker-1 for now.")],
                "no Pod train-worker-1 for now",
                id="other words",
            ),
            pytest.param(
                [LATER, failed_create(WORKERS, of_worker(1))], "forbidden: later", id="the newest of several"
            ),
            pytest.param([PASSES, failed_create(WORKERS, of_worker(1))], QUOTA, id="one that lasts"),
            pytest.param([PASSES], "", id="none while the API server comes back"),
            pytest.param(
                [failed_create(WORKERS, of_worker(1), lastTimestamp=None, eventTime=time(20))],
                QUOTA,
                id="a time where newer events have it",
            ),
            pytest.param([failed_create(WORKERS, of_worker(11))], "", id="none for another pod"),
            pytest.param([failed_create(LAUNCHER, of_worker(1))], "", id="none for another object"),
            pytest.param([failed_create(WORKERS, of_worker(1), lastTimestamp=None)], "", id="none at no time"),
        ],
    )
    def test_is_known_from_events(self, events: list[Body], reason: str) -> None:
        assert why(*events) == (f"can't be created: {reason}" if reason else "")

    @pytest.mark.parametrize(("made", "holds"), [(19, True), (20, True), (21, False)])
    def test_holds_until_another_was_made(self, made: float, *, holds: bool) -> None:
        told = why(failed_create(WORKERS, of_worker(1), at=20), made=(pods.worker(0, created=made),))

        assert bool(told) is holds


class TestWhichJobAnEventConcerns:
    @pytest.mark.parametrize(
        "about", [WORKERS, LAUNCHER, ("Pod", "train-worker-12"), ("Pod", "train-launcher-x7k2p")]
    )
    def test_the_name_of_what_it_is_about_says(self, about: tuple[str, str]) -> None:
        assert event_job(failed_create(about, "")) == JobKey("MPIJob", "ml", "train")

    @pytest.mark.parametrize(
        "about",
        [
            ("ReplicaSet", "train-worker"),
            ("Job", "train-worker"),
            ("StatefulSet", "-worker"),
            ("Job", "train"),
            ("Pod", "train-worker"),
            ("Pod", "train-0"),
            ("Pod", "web"),
        ],
    )
    def test_or_it_concerns_none(self, about: tuple[str, str]) -> None:
        assert event_job(failed_create(about, "")) is None


class TestAJob:
    def test_names_the_worker_and_the_reason_until_it_is_made(self) -> None:
        world = with_workers(pods.worker(0, created=5))
        world.put(failed_create(WORKERS, of_worker(1)))
        world.later(25)
        assert world.condition("Running") == (
            *WORKERS_NOT_READY,
            f"1 of 2 workers are Ready: train-worker-1 can't be created: {QUOTA}",
        )

        world.workers_are(pods.worker(0, created=5), pods.worker(1, created=30, conditions=pods.not_ready()))
        world.later(10)
        assert "can't be created" not in world.condition("Running")[2]

        world.worker_went(pods.worker(1, created=30))
        world.workers_are(pods.worker(0, created=5))
        world.later(10)
        assert world.condition("Running")[2] == "1 of 2 workers are Ready: train-worker-1 does not exist yet"

    @pytest.mark.parametrize(("template", "begins"), [("", True), ("of another", False)])
    def test_that_is_elastic_begins_with_the_workers_that_can_be_made(
        self, template: str, *, begins: bool
    ) -> None:
        world = settled(mpi_job(elastic={"minReplicas": 1}))
        worker, workers = pods.worker(0, created=5), world.get("StatefulSet")
        made_from = template or workers["spec"]["template"]["metadata"]["annotations"]["mpirt.dev/template"]
        worker["metadata"]["annotations"] = {"mpirt.dev/template": made_from}
        world.put(failed_create(WORKERS, of_worker(1)))
        world.workers_are(worker)
        # A StatefulSet that can't make a pod may never have said how it is doing.
        workers["status"] = {}

        done = world.later(25)

        assert ("create Job" in writes(done)) is begins

    def test_names_the_reason_of_its_launchers(self) -> None:
        world = with_workers()
        world.settle()

        world.put(failed_create(LAUNCHER, of_launcher()))
        world.later(25)

        assert world.condition("Running") == (
            False,
            "MPIJobLauncherNotRunning",
            f"the launcher's pod can't be created: {QUOTA}; 2 of 2 workers are Ready",
        )


WHY = "Pod ephemeral local storage usage exceeds the total limit of containers 64Mi. "
# As kubelets of 1.37 leave a worker whose main process obeys TERM.
OBEYED: dict[str, Any] = {
    "phase": "Succeeded",
    "conditions": pods.not_ready(reason="PodCompleted"),
    "containers": [pods.ended("main", 0, "Completed")],
}


def eviction(pod: str, *, uid: str = "") -> Body:
    return {
        "kind": "Eviction",
        "metadata": {"name": f"{pod}.1", "namespace": "ml", "uid": f"event-of-{pod}", "resourceVersion": "7"},
        "involvedObject": {"kind": "Pod", "name": pod, "namespace": "ml", "uid": uid or f"uid-of-{pod}"},
        "reason": "Evicted",
        "message": WHY,
    }


@pytest.mark.parametrize("is_replaced", [False, True], ids=["it is there", "another pod has its name"])
def test_a_worker_that_obeyed_its_node_was_evicted(*, is_replaced: bool) -> None:
    world = started()
    world.put(eviction("train-worker-1"))
    if is_replaced:
        world.worker_went(pods.worker(1, deleted=30, **OBEYED))
        world.workers_are(pods.worker(0), pods.worker(1, created=30) | {"metadata": another("train-worker-1")})
    else:
        world.workers_are(pods.worker(0), pods.worker(1, **OBEYED))

    world.later(5)

    assert world.condition("Running")[2] == f"{RUNS}train-worker-1 was evicted: {WHY.rstrip('. ')}"


def test_an_event_of_an_earlier_pod_of_the_name_says_nothing_of_this_one() -> None:
    world = started()
    world.put(eviction("train-worker-1", uid="uid-of-another"))

    world.later(5)

    assert "evicted" not in world.condition("Running")[2]


def another(name: str) -> Body:
    """The metadata of the next pod of that name."""
    metadata: Body = pods.pod(name, created=30)["metadata"]
    return metadata | {"uid": f"uid-of-the-next-{name}"}
