"""Objects that are made once and hardly change: account, role, binding, service; and events."""

from __future__ import annotations

from mpirt.controller.manifests.config_map import config_map
from mpirt.controller.manifests.launcher import launcher_job
from mpirt.controller.manifests.supporting import role, role_binding, service, service_account
from mpirt.controller.manifests.workers import stateful_set
from mpirt.controller.messages.events import announcement
from mpirt.controller.model.spec import JobKey, Owner
from tests.unit.controller.jobs import NOON, SETTINGS, UID, container, parsed, template

METADATA = {
    "name": "train-launcher",
    "namespace": "ml",
    "labels": {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "train",
        "app": "train",
    },
    "ownerReferences": [
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "name": "train",
            "uid": UID,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ],
}


def test_the_launchers_account() -> None:
    assert service_account(parsed()) == {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": METADATA}


def test_the_launcher_may_start_commands_in_these_workers_and_look_at_pods() -> None:
    assert role(parsed(), ["train-worker-0", "train-worker-1"]) == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": METADATA,
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["pods/exec"],
                "resourceNames": ["train-worker-0", "train-worker-1"],
                "verbs": ["get", "create"],
            },
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        ],
    }


def test_without_workers_the_launcher_may_start_commands_nowhere() -> None:
    assert role(parsed(), [])["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    ]


def test_everything_but_pods_carries_the_jobs_name_as_its_app_as_with_mpi_operator() -> None:
    spec = parsed()
    made = [
        *(role(spec, []), role_binding(spec), service_account(spec), service(spec), config_map(spec, {})),
        *(stateful_set(spec, SETTINGS), launcher_job(spec, SETTINGS)),
    ]

    assert {one["metadata"]["labels"]["app"] for one in made} == {"train"}
    templates = [one["spec"]["template"]["metadata"]["labels"] for one in made[-2:]]
    assert not any("app" in labels for labels in templates)


def test_the_role_is_bound_to_the_launchers_account() -> None:
    assert role_binding(parsed()) == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": METADATA,
        "subjects": [{"kind": "ServiceAccount", "name": "train-launcher", "namespace": "ml"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "train-launcher"},
    }


def test_the_role_is_bound_to_the_users_own_account() -> None:
    spec = parsed(launcher=template(container("mpi"), serviceAccountName="ann"))

    assert role_binding(spec)["subjects"] == [{"kind": "ServiceAccount", "name": "ann", "namespace": "ml"}]


def test_pods_have_names_before_they_are_ready() -> None:
    assert service(parsed())["spec"] == {
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": "train",
        },
    }


class TestEvents:
    OWNER = Owner("kubeflow.org/v2beta1", "MPIJob", JobKey("MPIJob", "ml", "train"), UID)

    def test_one_is_about_the_job(self) -> None:
        made = announcement(self.OWNER, "abc", warning=True, reason="Why", message="So.", now=NOON).manifest

        assert made == {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "train.abc", "namespace": "ml"},
            "involvedObject": {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "name": "train",
                "namespace": "ml",
                "uid": UID,
            },
            "type": "Warning",
            "reason": "Why",
            "message": "So.",
            "source": {"component": "mpirt-controller"},
            "firstTimestamp": "2026-05-04T12:00:00Z",
            "lastTimestamp": "2026-05-04T12:00:00Z",
            "count": 1,
        }

    def test_a_long_message_is_cut_to_what_the_api_takes(self) -> None:
        made = announcement(self.OWNER, "abc", warning=False, reason="Why", message="x" * 5000, now=NOON).manifest

        assert (made["type"], len(made["message"]), made["message"][-5:]) == ("Normal", 1024, "x ...")
