"""Workers are pods of a StatefulSet, with nothing of ours in them but a stub."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.manifests.sshd import IDLE
from mpirt.controller.manifests.tolerations import with_tolerations
from mpirt.controller.manifests.workers import stateful_set, worker_template
from tests.unit.controller.jobs import SETTINGS, container, mpi_job, parsed, template

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
    """Pods of an earlier version of the controller don't have them."""
    assert stateful_set(parsed(), SETTINGS)["spec"]["selector"]["matchLabels"] == LABELS


class TestWhatItRuns:
    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param({}, id="nothing said"),
            pytest.param({"command": [], "args": []}, id="nothing, in words"),
            pytest.param({"command": ["/usr/sbin/sshd"], "args": ["-De"]}, id="sshd"),
        ],
    )
    def test_it_waits_if_there_is_nothing_to_run(self, fields: dict[str, Any]) -> None:
        main = pod(container("worker", **fields))["containers"][0]

        assert (main["command"], main["args"]) == (list(IDLE), [])

    @pytest.mark.parametrize("fields", [{"command": ["git"]}, {"args": ["serve"]}])
    def test_it_runs_what_it_is_told(self, fields: dict[str, Any]) -> None:
        main = pod(container("worker", **fields))["containers"][0]

        assert {name: main[name] for name in ("command", "args") if name in main} == fields


class TestWhatIsTheUsers:
    def test_sidecars_are_untouched(self) -> None:
        sidecar = container("proxy")

        assert pod(container("worker", command=["sleep"]), sidecar)["containers"][1] == sidecar

    def test_a_variable_that_he_has_set_stays(self) -> None:
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

    def test_unless_the_user_wants_something_else(self) -> None:
        assert pod(hostNetwork=True, dnsPolicy="Default")["dnsPolicy"] == "Default"


class TestGangs:
    POLICY = {"schedulingPolicy": {"queue": "gpu", "priorityClass": "high", "minResources": {"cpu": "2"}}}  # noqa: RUF012  a literal

    def made(self, *, scheduler: str | None, policy: dict[str, Any], **job: Any) -> dict[str, Any]:
        chosen: dict[str, Any] = {"schedulerName": scheduler} if scheduler else {}
        worker = template(container("worker"), **chosen)
        return stateful_set(parsed(worker=worker, runPolicy=policy, **job), SETTINGS)

    def least(self, policy: dict[str, Any], **job: Any) -> str:
        made = self.made(scheduler="volcano", policy={"schedulingPolicy": policy}, **job)
        return str(made["metadata"]["annotations"]["scheduling.volcano.sh/group-min-member"])

    def test_volcano_reads_annotations(self) -> None:
        made = self.made(scheduler="volcano", policy=self.POLICY)

        annotations = made["metadata"]["annotations"]
        assert annotations["scheduling.volcano.sh/group-min-member"] == "2"
        assert made["spec"]["template"]["metadata"]["annotations"] == {
            "mpirt.dev/template": annotations["mpirt.dev/template"],
            "scheduling.volcano.sh/queue-name": "gpu",
        }
        assert made["spec"]["template"]["spec"]["priorityClassName"] == "high"

    def test_resources_of_a_gang_are_not_written_for_volcano_does_not_read_them(self) -> None:
        annotations = self.made(scheduler="volcano", policy=self.POLICY)["metadata"]["annotations"]

        assert "scheduling.volcano.sh/group-min-resources" not in annotations

    @pytest.mark.parametrize(
        ("policy", "job", "least"),
        [
            pytest.param({}, {"replicas": 4}, "4", id="all workers, where nothing is said"),
            pytest.param(
                {}, {"replicas": 4, "elastic": {"minReplicas": 2}}, "2", id="as few as an elastic job needs"
            ),
            pytest.param({"minAvailable": 5}, {"replicas": 4}, "4", id="one less, for the launcher comes later"),
            pytest.param({"minAvailable": 3}, {"replicas": 4}, "2", id="the same below"),
            pytest.param({"minAvailable": 1}, {"replicas": 4}, "1", id="at least one"),
            pytest.param({"minAvailable": 9}, {"replicas": 4}, "4", id="never more than there are"),
        ],
    )
    def test_a_gang_is_never_more_than_the_workers_that_can_be_there(
        self, policy: dict[str, Any], job: dict[str, Any], least: str
    ) -> None:
        """The launcher is made when they are Ready: if they waited for it, both would for ever."""
        assert self.least(policy, **job) == least

    def test_what_is_not_said_is_not_written(self) -> None:
        made = self.made(scheduler="volcano", policy={"schedulingPolicy": {"minAvailable": 1}})

        assert list(made["spec"]["template"]["metadata"]["annotations"]) == ["mpirt.dev/template"]
        assert "priorityClassName" not in made["spec"]["template"]["spec"]

    def test_a_queue_may_stand_in_the_jobs_annotations(self) -> None:
        job = mpi_job(
            worker=template(container("worker"), schedulerName="volcano"), runPolicy={"schedulingPolicy": {}}
        )
        job["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "night"}

        made = worker_template(MPI_JOB.parse(job), SETTINGS)

        assert made["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "night"
        job["spec"]["runPolicy"]["schedulingPolicy"] = {"queue": "day"}
        made = worker_template(MPI_JOB.parse(job), SETTINGS)
        assert made["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "day"

    def test_a_jobs_annotation_replaces_no_pods(self) -> None:
        job = mpi_job(
            worker=template(container("worker"), schedulerName="volcano"), runPolicy={"schedulingPolicy": {}}
        )
        before = MPI_JOB.parse(job).worker_digest

        job["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "night"}

        assert MPI_JOB.parse(job).worker_digest == before

    def test_others_group_by_a_label(self) -> None:
        made = self.made(scheduler=None, policy=self.POLICY)

        assert made["spec"]["template"]["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "train"
        assert set(made["metadata"]["annotations"]) == {
            "mpirt.dev/template",
            "mpirt.dev/generation",
            "mpirt.dev/earlier-workers",
        }
