"""How an object differs from its desired state, the patch that corrects it, and what is tried before."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from mpirt.controller.decisions.drift import correction
from mpirt.controller.decisions.dry_runs import refused_field
from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.supporting import role, role_binding, service, service_account
from mpirt.controller.manifests.workers import stateful_set
from mpirt.controller.model.actions import Action, Create, Delete, Patch, Rejection
from mpirt.controller.observed.observe import read_live
from mpirt.controller.observed.slim import slim
from tests.unit.controller.jobs import SETTINGS, Body, container, mpi_job, parsed, template
from tests.unit.controller.world import World, started, writes

SPEC = parsed()
KEEPERS = {"keeper-1-amd64": "YQ==", "keeper-1-arm64": "Yg=="}
WANTED: dict[str, Body] = {
    made["kind"]: made
    for made in (
        config_map(SPEC, KEEPERS),
        service_account(SPEC),
        role(SPEC, ["train-worker-0", "train-worker-1"]),
        role_binding(SPEC),
        service(SPEC),
        stateful_set(SPEC, SETTINGS),
        launcher_job(SPEC, SETTINGS),
    )
}
GUARD = {"op": "test", "path": "/metadata/uid", "value": "u"}


def as_stored(kind: str, *, generation: int = 1) -> Body:
    """The object as the API server has it, with what it adds."""
    body = copy.deepcopy(WANTED[kind])
    body["metadata"] |= {"uid": "u", "generation": generation, "resourceVersion": "7"}
    if "spec" in body:
        body["spec"]["revisionHistoryLimit"] = 10
    return body


def found(kind: str, change: Callable[[Body], None], **stored: Any) -> Action | None:
    body = as_stored(kind, **stored)
    change(body)
    return correction(WANTED[kind], read_live(kind, slim(kind, body)))


def operations(kind: str, change: Callable[[Body], None], **stored: Any) -> list[Any]:
    action = found(kind, change, **stored)
    assert isinstance(action, Patch)
    assert (action.kind, action.name) == (kind, WANTED[kind]["metadata"]["name"])
    assert action.operations[0] == GUARD
    return list(action.operations[1:])


def untouched(_: Body) -> None:
    pass


@pytest.mark.parametrize("kind", WANTED)
def test_an_object_as_it_was_made_is_right(kind: str) -> None:
    assert found(kind, untouched) is None


@pytest.mark.parametrize("kind", WANTED)
def test_a_label_of_ours_comes_back_and_others_stay(kind: str) -> None:
    def change(body: Body) -> None:
        body["metadata"]["labels"] |= {"app": "other", "team": "blue"}

    assert operations(kind, change) == [{"op": "add", "path": "/metadata/labels/app", "value": "train"}]


def test_labels_that_are_all_gone_come_back_together() -> None:
    def change(body: Body) -> None:
        del body["metadata"]["labels"]

    assert operations("Role", change) == [
        {"op": "add", "path": "/metadata/labels", "value": WANTED["Role"]["metadata"]["labels"]}
    ]


class TestTheOwnerReference:
    @pytest.mark.parametrize("kind", WANTED)
    def test_follows_the_version_that_is_served_and_others_stay(self, kind: str) -> None:
        other = {"apiVersion": "kubeflow.org/v9", "kind": "MPIJob", "name": "other", "uid": "uid-of-other"}

        def change(body: Body) -> None:
            [ours] = body["metadata"]["ownerReferences"]
            body["metadata"]["ownerReferences"] = [other, ours | {"apiVersion": "kubeflow.org/v1"}]

        at = "/metadata/ownerReferences/1"
        assert operations(kind, change) == [
            {"op": "test", "path": f"{at}/uid", "value": SPEC.owner.uid},
            {"op": "replace", "path": f"{at}/apiVersion", "value": "kubeflow.org/v2beta1"},
        ]

    def test_is_told_by_its_field_alone(self) -> None:
        def change(body: Body) -> None:
            body["metadata"]["ownerReferences"][0]["apiVersion"] = "kubeflow.org/v1"

        action = found("Role", change)

        assert action is not None
        assert action.why == "Role train-launcher has drifted: /metadata/ownerReferences/0/apiVersion"


class TestSections:
    @pytest.mark.parametrize(
        ("kind", "change", "written"),
        [
            pytest.param("Role", lambda body: body["rules"].append({"verbs": ["*"]}), ["rules"], id="a rule more"),
            pytest.param(
                "ConfigMap",
                lambda body: body.update(data={**body["data"], "more": ""}, binaryData={"x": ""}),
                ["data", "binaryData"],
                id="files more",
            ),
            pytest.param("RoleBinding", lambda body: body.pop("subjects"), ["subjects"], id="a section less"),
        ],
    )
    def test_that_were_changed_are_written_whole(
        self, kind: str, change: Callable[[Body], None], written: list[str]
    ) -> None:
        assert operations(kind, change) == [
            {"op": "add", "path": f"/{section}", "value": WANTED[kind][section]} for section in written
        ]

    def test_one_that_is_not_wanted_goes(self) -> None:
        assert operations("Service", lambda body: body["spec"].update(ports=[{"port": 22}])) == [
            {"op": "remove", "path": "/spec/ports"}
        ]

    def test_what_is_not_ours_is_let_be(self) -> None:
        def change(body: Body) -> None:
            body["secrets"] = [{"name": "token"}]
            body["imagePullSecrets"] = [{"name": "registry"}]

        assert found("ServiceAccount", change) is None


class TestWhatNobodyCanChange:
    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            pytest.param("RoleBinding", lambda body: body["roleRef"].update(name="admin"), id="another role"),
            pytest.param("Service", lambda body: body["spec"].update(clusterIP="10.0.0.1"), id="an address"),
            pytest.param("StatefulSet", lambda body: body["spec"].update(serviceName="x"), id="another service"),
            pytest.param("ConfigMap", lambda body: body.update(immutable=True), id="frozen"),
        ],
    )
    def test_is_made_again(self, kind: str, change: Callable[[Body], None]) -> None:
        name = WANTED[kind]["metadata"]["name"]

        why = f"an immutable field of {kind} {name} differs; recreating"
        assert found(kind, change) == Delete(kind, name, "u", why)


class TestTheWorkersTemplate:
    """It is told by the digest of what the user wrote, and by the generation."""

    TEMPLATE = [  # noqa: RUF012  a literal
        {"op": "add", "path": "/spec/template", "value": WANTED["StatefulSet"]["spec"]["template"]},
        {"op": "add", "path": "/spec/updateStrategy", "value": {"type": "RollingUpdate"}},
    ]

    def generation(self, number: int) -> Body:
        return {"op": "add", "path": "/metadata/annotations/mpirt.dev~1generation", "value": str(number)}

    def test_what_the_api_server_makes_of_it_is_no_difference(self) -> None:
        def change(body: Body) -> None:
            body["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"

        assert found("StatefulSet", change) is None

    def test_an_edit_raises_the_generation_and_all_of_it_is_written(self) -> None:
        assert operations("StatefulSet", untouched, generation=2) == [*self.TEMPLATE, self.generation(3)]

    def test_another_template_is_written_with_its_digest(self) -> None:
        other = stateful_set(parsed(worker=template(container("worker", image="mpi:5"))), SETTINGS)

        action = correction(other, read_live("StatefulSet", as_stored("StatefulSet")))

        assert isinstance(action, Patch)
        assert [operation["path"] for operation in action.operations[1:]] == [
            "/spec/template",
            "/spec/updateStrategy",
            "/metadata/annotations/mpirt.dev~1template",
            "/metadata/annotations/mpirt.dev~1generation",
        ]

    def test_scaling_alone_leaves_it(self) -> None:
        def change(body: Body) -> None:
            body["spec"]["replicas"] = 9

        assert operations("StatefulSet", change) == [
            {"op": "add", "path": "/spec/replicas", "value": 2},
            self.generation(2),
        ]

    def test_a_write_that_changed_nothing_is_noted(self) -> None:
        def change(body: Body) -> None:
            body["metadata"]["annotations"]["mpirt.dev/generation"] = "4"

        assert operations("StatefulSet", change, generation=3) == [self.generation(3)]

    def test_without_any_digest_all_of_it_is_written(self) -> None:
        def change(body: Body) -> None:
            del body["metadata"]["annotations"]
            del body["spec"]["template"]["metadata"]["annotations"]

        written = operations("StatefulSet", change)

        assert written[:2] == self.TEMPLATE
        assert written[2]["path"] == "/metadata/annotations"
        assert written[2]["value"]["mpirt.dev/generation"] == "2"


class TestTheLauncherJob:
    def test_a_launcher_job_that_somebody_has_suspended_is_left_suspended(self) -> None:
        assert found("Job", lambda body: body["spec"].update(suspend=True)) is None

    def test_a_deadline_that_is_wanted_is_written(self) -> None:
        wanted = launcher_job(parsed(runPolicy={"activeDeadlineSeconds": 9}), SETTINGS)

        action = correction(wanted, read_live("Job", as_stored("Job")))

        assert isinstance(action, Patch)
        assert action.operations[1:] == ({"op": "add", "value": 9, "path": "/spec/activeDeadlineSeconds"},)

    def test_one_that_is_not_is_taken_away(self) -> None:
        assert operations("Job", lambda body: body["spec"].update(activeDeadlineSeconds=9)) == [
            {"op": "remove", "path": "/spec/activeDeadlineSeconds"}
        ]


def tried(world: World) -> dict[str, Body]:
    """What is asked now, by kind."""
    return {
        one.kind: dict(one.manifest) for one in world.plan().actions if isinstance(one, Create) and one.dry_run
    }


def test_templates_are_tried_as_the_objects_that_will_hold_them() -> None:
    worker = template(container("worker", command=["serve"]), metadata={"labels": {"team": "blue"}})
    world = World(mpi_job(worker=worker))

    asked = tried(world)

    world.start()
    assert asked == {"Job": launcher_job(parsed(worker=worker), SETTINGS), "StatefulSet": made(world)}
    assert asked["StatefulSet"]["spec"]["template"]["metadata"]["labels"]["team"] == "blue"


def test_a_changed_template_is_tried_under_the_name_that_it_has_and_will_have() -> None:
    world = started()
    world.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template(container("worker", image="mpi:5"))

    asked = tried(world)

    assert list(asked) == ["StatefulSet"]
    assert asked["StatefulSet"]["metadata"]["name"] == "train-worker"


def test_a_suspended_job_asks_nothing() -> None:
    world = World()
    world.job["spec"]["runPolicy"] = {"suspend": True}

    assert not any(word.startswith("try") for word in writes(world.settle()))


def test_what_is_on_its_way_out_needs_no_answer() -> None:
    world = started()
    world.get("Job")["metadata"]["deletionTimestamp"] = "2026-05-04T12:00:20Z"
    world.job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = template(container("mpi", command=["other"]))

    assert not any(word.startswith("try") for word in writes(world.settle()))


def test_a_refusal_names_the_field_that_it_is_about() -> None:
    def about(kind: str) -> str:
        return refused_field(parsed(), Rejection(kind, "digest", "no", final=True))

    assert about("Job") == "spec.mpiReplicaSpecs.Launcher.template"
    assert about("StatefulSet") == "spec.mpiReplicaSpecs.Worker.template"
    assert about("Role") == ""


def made(world: World) -> Body:
    """The StatefulSet, as it was created."""
    body = world.get("StatefulSet")
    metadata = {name: value for name, value in body["metadata"].items() if name not in ("uid", "generation")}
    return {name: value for name, value in body.items() if name != "status"} | {"metadata": metadata}
