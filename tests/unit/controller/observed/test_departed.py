"""Pods and launcher Jobs that were deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pytest

from mpirt.controller.model.attempts import How
from mpirt.controller.observed.facts import end_of
from mpirt.controller.observed.history import worker_death
from mpirt.controller.observed.pods import read_pod
from mpirt.controller.observed.store import GoneJobs, Store
from tests.unit.controller.jobs import NOON, Body, at, time
from tests.unit.controller.observed.things import KEY, OTHER, pod, thing


class TestPodsThatWent:
    """They are shown for a while, in their last state."""

    @pytest.mark.parametrize(
        "goes",
        [
            pytest.param(lambda store: store.remove("Pod", pod(version="6", phase="Failed")), id="a watch"),
            pytest.param(lambda store: store.put("Pod", pod("second", "7")), id="another has its name"),
            pytest.param(lambda store: store.replace("Pod", [], "9"), id="a list no longer has it"),
            pytest.param(lambda store: store.forget("Pod", "ml", "train-worker-1", "first"), id="we deleted it"),
        ],
    )
    def test_one_is_shown_in_its_last_state(self, store: Store, goes: Callable[[Store], object]) -> None:
        store.put("Pod", pod())
        goes(store)

        assert gone(store) == [("first", "Running")]
        assert store.departed(OTHER, NOON) == []

    def test_not_one_that_has_only_changed(self, store: Store) -> None:
        store.put("Pod", pod())
        store.put("Pod", pod(version="6", phase="Failed"))

        assert gone(store) == []

    def test_nothing_but_pods(self, store: Store) -> None:
        store.put("ConfigMap", thing())
        store.remove("ConfigMap", thing(version="6"))

        assert store.departed(KEY, NOON) == []

    def test_for_half_a_minute(self) -> None:
        seconds = iter([0.0, 20.0, 31.0])
        store = Store(["MPIJob"], clock=lambda: at(next(seconds)))
        for uid in ("first", "second"):
            store.put("Pod", pod(uid))
            store.remove("Pod", pod(uid))

        assert gone(store, at(29)) == [("first", "Running"), ("second", "Running")]
        assert gone(store, at(30)) == [("second", "Running")]

        # Whoever is forgotten is no longer kept either.
        store.put("Pod", pod("third"))
        store.remove("Pod", pod("third"))
        assert gone(store, at(20)) == [("second", "Running"), ("third", "Running")]

    def test_and_nothing_is_left_of_a_job_that_is_gone(self, store: Store) -> None:
        other = {**pod(), "metadata": thing("other-worker-1", job="other")["metadata"]}
        for body in (pod(), other):
            store.put("Pod", body)
            store.remove("Pod", body)
        store.lend(KEY, "Service", thing("train", job=""), at(30))

        for _ in range(2):
            store.forget_job(KEY)

        assert gone(store) == []
        assert store.around(KEY, NOON) == {}
        assert len(store.departed(OTHER, NOON)) == 1


def gone(store: Store, now: datetime = NOON) -> list[tuple[str, str]]:
    return [(body["metadata"]["uid"], body["status"]["phase"]) for body, _ in store.departed(KEY, now)]


class TestAPodThatIsDeleted:
    @staticmethod
    def state(version: str, phase: str, *, deleted: bool = False) -> Body:
        body = pod(version=version, phase=phase)
        return {**body, "metadata": {**body["metadata"], **({"deletionTimestamp": time(0)} if deleted else {})}}

    @pytest.mark.parametrize(
        ("states", "by_deletion"),
        [
            ([("Running", True), ("Failed", True)], True),
            ([("Running", True), ("Succeeded", True), ("Succeeded", True)], True),
            ([("Running", False), ("Failed", False), ("Failed", True)], False),
            ([("Running", False), ("Failed", True)], False),
        ],
    )
    def test_has_ended_by_that_if_it_was_known_to_be_deleted_before(
        self, store: Store, states: list[tuple[str, bool]], *, by_deletion: bool
    ) -> None:
        for version, (phase, deleted) in enumerate(states, 5):
            store.put("Pod", self.state(str(version), phase, deleted=deleted))

        [body] = store.around(KEY, NOON)["Pod"]
        found = read_pod(body)

        assert found.ended_by_deletion is by_deletion
        death = worker_death(found, "main", at(-60))
        assert (death is not None and death.how is How.DELETED) is by_deletion


class TestALauncherJobThatIsDeleted:
    @staticmethod
    def job(version: str, *, ended: bool = False, deleted: bool = False) -> Body:
        body = thing(version=version)
        going = {"deletionTimestamp": "2026-05-04T12:00:00Z"} if deleted else {}
        conditions = [{"type": "Complete", "status": "True"}] if ended else []
        metadata = {**body["metadata"], **going}
        return {**body, "metadata": metadata, "spec": {}, "status": {"conditions": conditions}}

    def gone(self, store: Store) -> list[bool]:
        """For each that is known to be deleted whether it had ended before that."""
        return [end_of(body) is not None for body in store.around(KEY, NOON).get("gone Job", ())]

    def test_is_known_as_it_was_before(self, store: Store) -> None:
        store.put("Job", self.job("5", ended=True))
        assert self.gone(store) == []
        store.put("Job", self.job("6", ended=True, deleted=True))
        store.remove("Job", self.job("7", ended=True, deleted=True))

        assert self.gone(store) == [True]

    def test_is_forgotten_with_its_job(self, store: Store) -> None:
        store.miss_launcher_job(KEY)
        assert self.gone(store) == [False]

        store.forget_job(KEY)

        assert self.gone(store) == []


def job(*, ended: str = "", deleted: bool = False, uid: str = "one") -> Body:
    """A launcher Job; `ended`: the type of its last condition."""
    conditions = [{"type": ended, "status": "True"}] if ended else []
    return {
        "metadata": {"uid": uid, **({"deletionTimestamp": "2026-05-04T12:00:00Z"} if deleted else {})},
        "status": {"conditions": [{"type": "Suspended", "status": "False"}, *conditions]},
    }


RUNS, ENDED = job(), job(ended="Complete")
GOING, ENDED_AND_GOING = job(deleted=True), job(ended="Complete", deleted=True)


def seen(*states: Body | None) -> list[Mapping[str, Any]]:
    """What is known after a Job had these states, one after the other; None: it is gone, as it was last."""
    gone, before = GoneJobs(), None
    for state in states:
        if state is None:
            assert before is not None
            gone.removed(KEY, before, before)
        else:
            gone.put(KEY, before, state)
            before = state
    return gone.of(KEY)


@pytest.mark.parametrize(
    ("states", "known"),
    [
        pytest.param([RUNS], [], id="it runs"),
        pytest.param([RUNS, ENDED], [], id="it has ended"),
        pytest.param([RUNS, None], [RUNS], id="deleted at once"),
        pytest.param([RUNS, ENDED, None], [ENDED], id="ended, then deleted at once"),
        pytest.param([RUNS, GOING], [RUNS], id="it is being deleted"),
        pytest.param([RUNS, ENDED_AND_GOING, None], [RUNS], id="it ended with its deletion"),
        pytest.param([RUNS, GOING, ENDED_AND_GOING, None], [RUNS], id="it ended during its deletion"),
        pytest.param([RUNS, ENDED, ENDED_AND_GOING, None], [ENDED], id="ended, then deleted"),
        pytest.param([GOING, None], [GOING], id="it was being deleted when it was first seen"),
        pytest.param([ENDED_AND_GOING, None], [{}], id="and had ended, before that or by it"),
        pytest.param([RUNS, GOING, None, job(uid="two")], [], id="it has a successor"),
        pytest.param([RUNS, job(uid="two", deleted=True)], [job(uid="two", deleted=True)], id="which is deleted"),
    ],
)
def test_what_counts_is_the_state_before_the_deletion(states: list[Body | None], known: list[Body]) -> None:
    assert seen(*states) == known


@pytest.mark.parametrize(
    ("last", "known"),
    [
        pytest.param(ENDED, ENDED, id="a deletion at once: it counts"),
        pytest.param(ENDED_AND_GOING, RUNS, id="a longer deletion: it does not"),
    ],
)
def test_an_end_that_the_last_state_of_a_deleted_job_shows(last: Body, known: Body) -> None:
    gone = GoneJobs()

    gone.removed(KEY, RUNS, last)

    assert gone.of(KEY) == [known]


def test_one_that_is_missed_is_gone_unless_more_is_known() -> None:
    gone = GoneJobs()
    gone.miss(KEY)
    assert gone.of(KEY) == [{}]

    gone.removed(KEY, RUNS, RUNS)
    gone.miss(KEY)
    assert gone.of(KEY) == [RUNS]

    gone.forget(KEY)
    assert gone.of(KEY) == []


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_the_end_of_a_job(kind: str) -> None:
    assert end_of(job(ended=kind)) == {"type": kind, "status": "True"}
    assert end_of(job(ended="FailureTarget")) is None
