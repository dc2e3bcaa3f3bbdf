"""Objects out of informer caches, read into what a plan needs to know."""

from __future__ import annotations

import json

import pytest

from mpirt.controller.decisions.drift import correction
from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.supporting import role
from mpirt.controller.model.actions import Patch
from mpirt.controller.model.conditions import JobStatus
from mpirt.controller.model.objectnames import MOST_WORKERS
from mpirt.controller.model.spec import JobKey
from mpirt.controller.observed.facts import Observed
from mpirt.controller.observed.observe import Cached, Circumstances, job_key, observe, read_live
from mpirt.controller.observed.slim import named_workers, slim
from tests.unit.controller import pods
from tests.unit.controller.jobs import NOON, SETTINGS, UID, Body, mpi_job, parsed, time


def owned(kind: str, name: str, *, owner: str = UID, namespace: str = "ml", **metadata: object) -> Body:
    reference = {"kind": "MPIJob", "name": "train", "uid": owner, "controller": True}
    return {
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{kind}",
            "ownerReferences": [reference],
            **metadata,
        },
    }


def seen(cached: Cached) -> Observed:
    job = mpi_job()
    return observe(job, cached, [], Circumstances(SETTINGS, NOON), owner=MPI_JOB.owner(job), status=JobStatus())


class TestWhoseAnObjectIs:
    def test_ours_is_what_our_uid_controls(self) -> None:
        found = seen({"ConfigMap": [owned("ConfigMap", "train-config")]})

        assert list(found.mine) == ["ConfigMap"]
        assert found.others == ()
        assert found.created == NOON

    def test_the_same_name_under_another_uid_is_not(self) -> None:
        found = seen({"ConfigMap": [owned("ConfigMap", "train-config", owner="another")]})

        assert found.mine == {}
        assert [live.owner_name for live in found.others] == ["MPIJob train"]

    def test_nor_what_only_mentions_us(self) -> None:
        body = owned("Role", "train-launcher")
        body["metadata"]["ownerReferences"][0]["controller"] = False

        assert [live.owner_name for live in seen({"Role": [body]}).others] == [""]

    def test_a_job_of_the_same_name_in_another_namespace_is_another_job(self) -> None:
        found = seen(
            {
                "ConfigMap": [owned("ConfigMap", "train-config", namespace="other")],
                "Pod": [{**pods.worker(0), "metadata": {**pods.worker(0)["metadata"], "namespace": "other"}}],
                "StatefulSet": [owned("StatefulSet", "train-worker")],
            }
        )

        assert list(found.mine) == ["StatefulSet"]
        assert (found.others, found.workers) == ((), ())

    def test_objects_of_other_jobs_do_no_harm(self) -> None:
        assert seen({"Service": [owned("Service", "train2")]}) == seen({})


def copied(body: Body, name: str) -> Body:
    """As `kubectl debug --copy-to` makes it."""
    metadata = {key: value for key, value in body["metadata"].items() if key != "generateName"}
    return {**body, "metadata": {**metadata, "name": name}}


class TestPods:
    def test_workers_are_those_of_the_stateful_set_in_the_order_of_their_numbers(self) -> None:
        cached = {
            "StatefulSet": [owned("StatefulSet", "train-worker")],
            "Pod": [pods.worker(10), pods.worker(2), pods.worker(1, owner="earlier"), pods.pod("odd")],
        }

        assert [pod.name for pod in seen(cached).workers] == ["odd", "train-worker-2", "train-worker-10"]

    def test_launchers_are_those_of_the_job_the_oldest_first(self) -> None:
        cached = {
            "Job": [owned("Job", "train-launcher")],
            "Pod": [
                pods.launcher("b", created=20),
                pods.launcher("a", created=30),
                pods.launcher("train-launcher-c", owner="x"),
            ],
        }

        found = seen(cached)
        assert [pod.name for pod in found.launchers] == ["b", "a"]
        assert [pod.name for pod in found.previous_launchers] == ["train-launcher-c"]

    @pytest.mark.parametrize("owner", ["uid-of-an-earlier-one", ""])
    def test_of_an_object_that_had_the_name_and_orphans_are_left(self, owner: str) -> None:
        found = seen({"Pod": [pods.worker(0, owner=owner), pods.launcher(owner=owner)]})

        assert [pod.name for pod in (*found.previous_workers, *found.previous_launchers)] == [
            "train-worker-0",
            "train-launcher-1",
        ]

    @pytest.mark.parametrize(
        "pod",
        [
            pytest.param(pods.pod("my-copy", role="launcher", owner=""), id="of a person"),
            pytest.param(copied(pods.worker(0, owner=""), "train-worker-0-debug"), id="a copy"),
            pytest.param(pods.worker(0, made_by={"kind": "Job", "name": "train-worker"}), id="of another kind"),
            pytest.param(pods.worker(0, made_by={"kind": "StatefulSet", "name": "else"}), id="of another name"),
        ],
    )
    def test_of_others_are_not_ours_for_having_our_labels(self, pod: Body) -> None:
        found = seen({"Pod": [pod]})

        assert found.previous_workers == found.previous_launchers == ()


class TestWhichJobAnObjectConcerns:
    def test_its_label_says(self) -> None:
        assert job_key(pods.worker(0)) == JobKey("MPIJob", "ml", "train")

    def test_or_nothing_does(self) -> None:
        assert job_key(owned("ConfigMap", "train-config")) is None


class TestWhatIsKeptInMemory:
    def test_nothing_that_is_read_is_lost(self) -> None:
        cached = {
            "StatefulSet": [owned("StatefulSet", "train-worker", annotations={"a": "b"}, labels={"c": "d"})],
            "Pod": [pods.worker(0, conditions=pods.lost(3), inits=[pods.running("i")])],
        }
        cached["StatefulSet"][0]["spec"] = {"replicas": 2}

        slimmed = {kind: [slim(kind, body) for body in bodies] for kind, bodies in cached.items()}

        assert seen(slimmed) == seen(cached)

    def test_what_is_never_read_is_left_out(self) -> None:
        pod = pods.worker(0, spec={"containers": [{"name": "main"}], "readinessGates": []})
        pod["metadata"] |= {
            "managedFields": [{}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"},
        }
        labels = dict(pod["metadata"]["labels"])
        pod["metadata"]["labels"] |= {"group-name": "kubeflow.org", "team": "a"}

        slimmed = slim("Pod", pod)

        assert slimmed["spec"] == {"nodeName": "node-1", "readinessGates": []}
        assert slimmed["metadata"]["annotations"] == {"a": "b"}
        assert "managedFields" not in slimmed["metadata"]
        assert slimmed["metadata"]["labels"].items() < labels.items()
        assert slim("Pod", slimmed) == slimmed

    def test_of_an_event_is_kept_what_is_read(self) -> None:
        read = {"involvedObject": {"uid": "u"}, "message": "no", "lastTimestamp": time(3)}
        event = {
            "metadata": {"name": "e", "managedFields": [{}]},
            **read,
            "source": {"component": "x"},
            "count": 3,
        }

        assert slim("Event", event) == {"metadata": {"name": "e"}, **read}

    def test_templates_are_known_by_their_digests(self) -> None:
        body = owned("Job", "train-launcher") | {"spec": {"template": {}, "parallelism": 1}}

        assert slim("Job", body)["spec"] == {"parallelism": 1}

    def test_of_a_template_are_kept_the_digests_that_are_in_it(self) -> None:
        metadata = {"annotations": {"mpirt.dev/template": "1", "mpirt.dev/workers": "2", "a": "b"}, "labels": {}}
        body = owned("Job", "train-launcher") | {"spec": {"template": {"metadata": metadata, "spec": {}}}}

        slimmed = slim("Job", body)

        kept = {"mpirt.dev/template": "1", "mpirt.dev/workers": "2"}
        assert slimmed["spec"] == {"template": {"metadata": {"annotations": kept}}}
        assert slim("Job", slimmed) == slimmed

    def test_an_object_is_on_its_way_out_when_it_says_so(self) -> None:
        found = seen({"Job": [owned("Job", "train-launcher", deletionTimestamp=time(3))]})

        assert "Job" in found.mine
        assert found.live("Job") is None


KEEPERS = {"keeper-1-amd64": "AAAA" * 25_000}
LARGE = parsed(replicas=MOST_WORKERS)
MADE: dict[str, Body] = {"ConfigMap": config_map(LARGE, KEEPERS), "Role": role(LARGE, [*LARGE.workers.names])}


def kept(kind: str, **changed: object) -> Body:
    """The object in the cache, as the API server has it."""
    body = {**MADE[kind], **changed}
    return slim(kind, json.loads(json.dumps(body)))


@pytest.mark.uncounted
@pytest.mark.parametrize("kind", MADE)
def test_a_job_of_ten_thousand_workers_takes_little_space(kind: str) -> None:
    assert len(json.dumps(MADE[kind])) > 200_000

    assert len(json.dumps(kept(kind))) < 1_500


@pytest.mark.uncounted
def test_the_workers_that_a_role_names_are_known_all_the_same() -> None:
    names = {"train-worker-0", "train-worker-1", "train-worker-7", "train-worker-9"}
    body = role(LARGE, [*names, "another", "train-worker-x"])

    assert named_workers("train", slim("Role", body)) == names
    assert named_workers("train", slim("Role", role(LARGE, []))) == set()
    assert named_workers("train", {}) == set()


@pytest.mark.uncounted
@pytest.mark.parametrize(
    ("kind", "section", "edited"),
    [
        pytest.param("ConfigMap", "data", {**MADE["ConfigMap"]["data"], "hostfile": ""}, id="a changed file"),
        pytest.param("ConfigMap", "data", {**MADE["ConfigMap"]["data"], "more": ""}, id="a file more"),
        pytest.param("ConfigMap", "binaryData", {"keeper-1-amd64": "BBBB"}, id="another keeper"),
        pytest.param("ConfigMap", "binaryData", {}, id="no keeper"),
        pytest.param("Role", "rules", MADE["Role"]["rules"][:1], id="a rule less"),
        pytest.param("Role", "rules", [], id="no rule"),
    ],
)
def test_an_edit_is_found_and_the_whole_section_is_written(kind: str, section: str, edited: object) -> None:
    action = correction(MADE[kind], read_live(kind, kept(kind, **{section: edited})))

    assert isinstance(action, Patch)
    [operation] = action.operations[1:]
    assert operation == {"op": "add", "path": f"/{section}", "value": MADE[kind][section]}


@pytest.mark.uncounted
def test_a_section_that_is_not_wanted_is_removed() -> None:
    action = correction(config_map(LARGE, {}), read_live("ConfigMap", kept("ConfigMap")))

    assert isinstance(action, Patch)
    assert action.operations[1:] == ({"op": "remove", "path": "/binaryData"},)
