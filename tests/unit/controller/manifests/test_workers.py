"""Workers are pods of a StatefulSet, with nothing of ours in them but a stub."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.manifests.pods import with_tolerations
from mpirt.controller.manifests.sshd import IDLE
from mpirt.controller.manifests.workers import stateful_set, worker_template
from tests.unit.controller.jobs import SETTINGS, container, parsed, template

LABELS = {
    "training.kubeflow.org/operator-name": "mpi-operator",
    "training.kubeflow.org/job-name": "train",
    "training.kubeflow.org/job-role": "worker",
}

# Which mpi-operator v1 had, and nothing selects by.
V1_LABELS = {"group-name": "kubeflow.org", "mpi-job-name": "train", "mpi-job-role": "worker"}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    worker = template(*(containers or [container("worker", command=["sleep"])]), **spec)
    made: dict[str, Any] = worker_template(parsed(worker=worker), SETTINGS)["spec"]
    return made


def test_the_stateful_set() -> None:
    made = stateful_set(parsed(), SETTINGS)

    assert made["metadata"]["name"] == "train-worker"
    assert made["metadata"]["annotations"] == {
        "mpirt.dev/template": parsed().worker_digest,
        "mpirt.dev/generation": "1",
        "mpirt.dev/earlier-workers": "gone",
    }
    assert {**made["spec"], "template": {}} == {
        "replicas": 2,
        "serviceName": "train",
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate"},
        "selector": {"matchLabels": LABELS},
        "template": {},
    }


def test_a_workers_pod() -> None:
    metadata = {"labels": {"tier": "gpu", "training.kubeflow.org/job-role": "boss"}, "annotations": {"a": "b"}}
    worker = template(
        container("worker", command=["sleep", "1"], env=[{"name": "A", "value": "1"}]), metadata=metadata
    )

    made = worker_template(parsed(worker=worker), SETTINGS)

    assert made == {
        "metadata": {
            "labels": {"tier": "gpu", **LABELS, **V1_LABELS},
            "annotations": {"a": "b", "mpirt.dev/template": parsed(worker=worker).worker_digest},
        },
        "spec": {
            "containers": [
                {
                    "name": "worker",
                    "image": "mpi:4",
                    "command": ["sleep", "1"],
                    "env": [{"name": "A", "value": "1"}, {"name": "K_MPI_JOB_ROLE", "value": "worker"}],
                    "volumeMounts": [{"name": "mpi-job-config", "mountPath": "/etc/mpi"}],
                }
            ],
            "volumes": [
                {
                    "name": "mpi-job-config",
                    "configMap": {
                        "name": "train-config",
                        "items": [{"key": "kubexec.sh", "path": "kubexec.sh", "mode": 0o555}],
                    },
                }
            ],
            "dnsConfig": {"searches": ["train.ml.svc.cluster.local"]},
            "restartPolicy": "Always",
            "tolerations": with_tolerations({}),
            "automountServiceAccountToken": False,
        },
    }


def test_the_labels_of_old_readers_select_nothing() -> None:
    """A selector is immutable: it has only the labels that every version writes."""
    assert stateful_set(parsed(), SETTINGS)["spec"]["selector"]["matchLabels"] == LABELS


class TestWhatItRuns:
    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param({}, id="nothing given"),
            pytest.param({"command": [], "args": []}, id="nothing, in words"),
            pytest.param({"command": ["/usr/sbin/sshd"], "args": ["-De"]}, id="sshd"),
        ],
    )
    def test_it_waits_if_there_is_nothing_to_run(self, fields: dict[str, Any]) -> None:
        main = pod(container("worker", **fields))["containers"][0]

        assert (main["command"], main["args"]) == (list(IDLE), [])

    @pytest.mark.parametrize("fields", [{"command": ["git"]}, {"args": ["serve"]}])
    def test_a_given_command_runs(self, fields: dict[str, Any]) -> None:
        main = pod(container("worker", **fields))["containers"][0]

        assert {name: main[name] for name in ("command", "args") if name in main} == fields


class TestWhatIsTheUsers:
    def test_sidecars_are_untouched(self) -> None:
        sidecar = container("proxy")

        assert pod(container("worker", command=["sleep"]), sidecar)["containers"][1] == sidecar

    def test_a_variable_that_is_set_stays(self) -> None:
        own = [{"name": "K_MPI_JOB_ROLE", "value": "boss"}]

        assert pod(container("worker", env=own))["containers"][0]["env"] == own

    def test_mounts_and_volumes_come_first(self) -> None:
        mount, volume = {"name": "data", "mountPath": "/data"}, {"name": "data", "emptyDir": {}}

        made = pod(container("worker", volumeMounts=[mount]), volumes=[volume])

        assert made["containers"][0]["volumeMounts"][0] == mount
        assert made["volumes"][0] == volume

    def test_search_domains_are_kept(self) -> None:
        searches = {"searches": ["example.com"], "nameservers": ["10.0.0.1"]}

        assert pod(dnsConfig=searches)["dnsConfig"] == {
            "searches": ["example.com", "train.ml.svc.cluster.local"],
            "nameservers": ["10.0.0.1"],
        }

    def test_a_domain_that_is_there_is_not_doubled(self) -> None:
        searches = {"searches": ["train.ml.svc.cluster.local"]}

        assert pod(dnsConfig=searches)["dnsConfig"] == searches

    @pytest.mark.parametrize(
        ("spec", "asked"),
        [
            pytest.param({}, False, id="by nothing"),
            pytest.param({"serviceAccountName": "ann"}, None, id="by an account, which decides"),
            pytest.param({"automountServiceAccountToken": True}, True, id="by saying so"),
        ],
    )
    def test_a_token_has_to_be_asked_for(self, spec: dict[str, Any], asked: object) -> None:
        assert pod(**spec).get("automountServiceAccountToken") is asked


class TestTheHostsNetwork:
    @pytest.mark.parametrize("policy", [None, "", "ClusterFirst"])
    def test_pods_on_it_ask_the_clusters_dns(self, policy: str | None) -> None:
        assert pod(hostNetwork=True, dnsPolicy=policy)["dnsPolicy"] == "ClusterFirstWithHostNet"

    def test_another_policy_of_the_users_is_kept(self) -> None:
        assert pod(hostNetwork=True, dnsPolicy="Default")["dnsPolicy"] == "Default"
