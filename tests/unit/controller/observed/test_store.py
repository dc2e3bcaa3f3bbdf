"""What is known of the cluster, and which of two versions is newer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mpirt.controller.model.spec import JobKey
from mpirt.controller.observed.store import Store
from tests.unit.controller.jobs import NOON, at
from tests.unit.controller.observed.things import KEY, OTHER, pod, thing


def job(name: str = "train", version: str = "5") -> dict[str, Any]:
    return {"metadata": {"namespace": "ml", "name": name, "uid": name, "resourceVersion": version}}


def versions(found: Mapping[str, list[Any]]) -> dict[str, list[str]]:
    return {kind: [body["metadata"]["resourceVersion"] for body in bodies] for kind, bodies in found.items()}


def owned(kind: str, name: str = "train-config", **fields: Any) -> dict[str, Any]:
    """An object that a job of that kind controls."""
    body = thing(name, **fields)
    body["metadata"]["ownerReferences"] = [{"kind": kind, "name": "train", "uid": "x", "controller": True}]
    return body


def test_of_a_job_that_is_nested_without_end_a_hundred_levels_are_kept(store: Store) -> None:
    deep: Any = None
    for _ in range(9_990):
        deep = {"a": deep}

    changed = store.put("MPIJob", {**job(), "spec": {"unknown": deep, "slotsPerWorker": 2}})

    kept, levels = store.job(KEY), 0
    assert kept is not None
    spec = kept["spec"]
    below = spec["unknown"]
    while below is not None:
        below, levels = below["a"], levels + 1
    assert (changed, spec["slotsPerWorker"], levels) == ({KEY}, 2, 99)


class TestJobsOfSeveralKinds:
    def test_of_one_name_are_told_apart_by_the_owners_of_their_objects(self) -> None:
        store = Store(["MPIJob", "TrainingJob"], clock=lambda: NOON)
        store.put("MPIJob", job())
        store.put("TrainingJob", job())

        assert store.put("ConfigMap", owned("MPIJob")) == {KEY}
        assert store.put("Role", owned("TrainingJob")) == {JobKey("TrainingJob", "ml", "train")}
        assert sorted(each.kind for each in store.jobs()) == ["MPIJob", "TrainingJob"]

    def test_an_object_whose_owner_is_no_job_is_found_by_its_labels(self) -> None:
        store = Store(["MPIJob", "TrainingJob"], clock=lambda: NOON)
        pod = owned("StatefulSet", "train-worker-0")
        pod["metadata"]["labels"]["mpirt.dev/job-kind"] = "TrainingJob"

        assert store.put("Service", pod) == {JobKey("TrainingJob", "ml", "train")}

    def test_an_object_is_its_owners_whatever_its_labels_say(self, store: Store) -> None:
        assert store.put("ConfigMap", owned("MPIJob", job="other")) == {KEY}


class TestAnAnswerThatComesLate:
    @pytest.mark.parametrize(
        ("version", "concerned"),
        [
            pytest.param("6", set[JobKey](), id="older than the end that a watch has reported"),
            pytest.param("7", set[JobKey](), id="of that deletion, which was complete at once"),
            pytest.param("8", {KEY}, id="later"),
        ],
    )
    def test_is_stored_only_if_the_object_is_not_known_to_be_gone(
        self, store: Store, version: str, concerned: set[JobKey]
    ) -> None:
        store.put("Pod", pod(version="5"))
        store.remove("Pod", pod(version="7"))

        assert store.put("Pod", pod(version=version)) == concerned
        assert bool(store.around(KEY, NOON)) is bool(concerned)

    def test_is_known_for_late_as_long_as_it_may_be_under_way(self, store: Store) -> None:
        store.remove("ConfigMap", thing(version="7"))
        for number in range(10_000):
            store.remove("ConfigMap", thing(version="7", uid=f"uid-{number}"))

        assert store.put("ConfigMap", thing(version="6", uid="uid-0")) == set()
        assert store.put("ConfigMap", thing(version="6")) == {KEY}


class TestWhatWatchesTell:
    def test_an_object_is_found_by_the_job_that_it_concerns(self, store: Store) -> None:
        assert store.put("ConfigMap", thing()) == {KEY}
        assert store.put("ConfigMap", thing()) == set()
        assert store.put("Service", thing("other", job="other")) == {OTHER}

        assert versions(store.around(KEY, NOON)) == {"ConfigMap": ["5"]}

    def test_so_is_an_event_of_what_is_its(self, store: Store) -> None:
        event = thing("e", job="") | {
            "involvedObject": {"kind": "Job", "namespace": "ml", "name": "train-launcher"},
            "message": "no",
        }

        assert store.put("Event", event) == {KEY}
        assert versions(store.around(KEY, NOON)) == {"Event": ["5"]}

    def test_a_job_that_comes_in_another_version_of_the_api_is_taken_in_that(self, store: Store) -> None:
        """It may have other fields there, and what is made for it names the version that is served."""
        store.put("MPIJob", job() | {"apiVersion": "kubeflow.org/v2beta1"})

        assert store.put("MPIJob", job() | {"apiVersion": "kubeflow.org/v1"}) == {KEY}
        found = store.job(KEY)
        assert found is not None
        assert found["apiVersion"] == "kubeflow.org/v1"
        assert store.put("MPIJob", job(version="4") | {"apiVersion": "kubeflow.org/v2beta1"}) == set()

    def test_an_older_version_that_comes_late_is_passed_over(self, store: Store) -> None:
        store.put("ConfigMap", thing(version="10"))

        assert store.put("ConfigMap", thing(version="9")) == set()
        assert versions(store.around(KEY, NOON)) == {"ConfigMap": ["10"]}

    def test_an_object_that_changes_its_job_concerns_both(self, store: Store) -> None:
        store.put("ConfigMap", thing())

        assert store.put("ConfigMap", thing(version="6", job="other")) == {KEY, OTHER}
        assert store.around(KEY, NOON) == {}

    def test_an_object_that_loses_its_label_is_forgotten(self, store: Store) -> None:
        store.put("ConfigMap", thing())

        assert store.put("ConfigMap", thing(version="6", job="")) == {KEY}
        assert store.put("ConfigMap", thing(version="7", job="")) == set()
        assert store.around(KEY, NOON) == {}

    def test_the_end_of_a_former_object_is_not_the_end_of_its_successor(self, store: Store) -> None:
        store.put("ConfigMap", thing(version="8", uid="second"))

        assert store.remove("ConfigMap", thing(version="7", uid="first")) == set()
        assert versions(store.around(KEY, NOON)) == {"ConfigMap": ["8"]}


class TestLists:
    def test_what_a_list_lacks_is_gone(self, store: Store) -> None:
        store.put("ConfigMap", thing(version="5"))
        store.put("ConfigMap", thing("other-config", "5", job="other"))
        store.put("Service", thing("train"))

        assert store.replace("ConfigMap", [thing("other-config", "5", job="other")], "9") == {KEY}
        assert list(store.around(KEY, NOON)) == ["Service"]

    def test_but_not_what_is_newer_than_the_list(self, store: Store) -> None:
        store.put("ConfigMap", thing(version="12"))

        assert store.replace("ConfigMap", [], "9") == set()
        assert versions(store.around(KEY, NOON)) == {"ConfigMap": ["12"]}

    def test_what_a_list_brings_is_new(self, store: Store) -> None:
        assert store.replace("MPIJob", [job("train"), job("other")], "9") == {KEY, OTHER}
        assert sorted(map(str, store.jobs())) == ["ml/other", "ml/train"]
        assert store.names("MPIJob") == [("ml", "train"), ("ml", "other")]


class TestOurOwnWrites:
    def test_what_we_deleted_is_not_brought_back_by_an_event_that_was_under_way(self, store: Store) -> None:
        store.put("ConfigMap", thing())
        store.put("ConfigMap", thing("train-more", uid="b"))
        store.forget("ConfigMap", "ml", "train-config", "u")

        assert store.put("ConfigMap", thing(version="6")) == set()
        assert [body["metadata"]["name"] for body in store.around(KEY, NOON)["ConfigMap"]] == ["train-more"]

    def test_once_its_end_was_told_nothing_is_kept_of_it(self, store: Store) -> None:
        store.put("ConfigMap", thing())
        store.forget("ConfigMap", "ml", "train-config", "u")
        store.remove("ConfigMap", thing(version="7"))

        assert store.put("ConfigMap", thing(version="8")) == {KEY}

    def test_a_list_that_was_made_after_it_knows_better(self, store: Store) -> None:
        store.put("ConfigMap", thing())
        store.put("Service", thing("train", uid="s"))
        store.forget("ConfigMap", "ml", "train-config", "u")
        store.forget("Service", "ml", "train", "s")
        store.replace("ConfigMap", [], "9")

        assert store.put("ConfigMap", thing(version="10")) == {KEY}
        assert store.put("Service", thing("train", "10", uid="s")) == set()

    def test_another_object_of_that_name_is_not_forgotten(self, store: Store) -> None:
        store.put("ConfigMap", thing(uid="second"))
        store.forget("ConfigMap", "ml", "train-config", "first")

        assert versions(store.around(KEY, NOON)) == {"ConfigMap": ["5"]}


class TestWhatIsInTheWay:
    def test_is_dropped_when_it_is_deleted(self, store: Store) -> None:
        store.put("MPIJob", job())
        store.lend(KEY, "Service", thing("train", job=""), at(30))

        store.take_back(KEY, "Service", "train")

        assert "Service" not in store.around(KEY, NOON)

    def test_it_is_shown_to_the_job_for_a_while(self, store: Store) -> None:
        store.lend(KEY, "Service", thing("train", job=""), at(30))

        assert versions(store.around(KEY, at(29))) == {"Service": ["5"]}
        assert store.lent_until(KEY, at(29)) == at(30)
        assert store.around(OTHER, at(29)) == {}
        assert store.around(KEY, at(30)) == {}
        assert store.lent_until(KEY, at(30)) is None

    def test_once_a_watch_brings_it_that_counts(self, store: Store) -> None:
        store.lend(KEY, "Service", thing("train", job=""), at(30))
        store.put("Service", thing("train", "6"))

        assert versions(store.around(KEY, at(1))) == {"Service": ["6"]}

    def test_so_is_what_the_watch_brings_as_another_jobs_until_it_has_this_ones_label(self, store: Store) -> None:
        store.put("Service", thing("train", "6", job="other"))
        store.lend(KEY, "Service", thing("train", "6", job="other"), at(30))
        assert versions(store.around(KEY, at(1))) == {"Service": ["6"]}

        store.put("Service", thing("train", "7"))

        assert versions(store.around(KEY, at(1))) == {"Service": ["7"]}
        assert store.around(OTHER, at(1)) == {}
