"""The launcher's Job and its pod."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.manifests.launcher import launcher_job, launcher_template
from mpirt.controller.model.spec import Settings
from tests.unit.controller.jobs import SETTINGS, container, mpi_job, parsed, template


def pod(*, settings: Settings = SETTINGS, **job: Any) -> dict[str, Any]:
    made: dict[str, Any] = launcher_template(parsed(**job), settings)["spec"]
    return made


def main(**job: Any) -> dict[str, Any]:
    made: dict[str, Any] = pod(**job)["containers"][0]
    return made


def environment(**job: Any) -> dict[str, str]:
    return {one["name"]: one["value"] for one in main(**job)["env"]}


class TestTheJob:
    def test_a_plain_one(self) -> None:
        made = launcher_job(parsed(), SETTINGS)

        assert made["metadata"]["name"] == "train-launcher"
        assert made["metadata"]["annotations"] == {
            "mpirt.dev/template": parsed().launcher_digest,
            "mpirt.dev/workers": parsed().worker_digest,
        }
        assert {**made["spec"], "template": {}} == {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            "template": {},
        }

    def test_the_deadline_comes_with_it_but_neither_retries_nor_a_ttl(self) -> None:
        policy = {"backoffLimit": 3, "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 5}

        made = launcher_job(parsed(runPolicy=policy), SETTINGS)["spec"]

        assert (made["backoffLimit"], made["activeDeadlineSeconds"]) == (0, 60)
        assert "ttlSecondsAfterFinished" not in made

    def test_scaling_does_not_change_its_template(self) -> None:
        assert launcher_job(parsed(replicas=2), SETTINGS) == launcher_job(parsed(replicas=200), SETTINGS)


class TestThePod:
    def test_its_place(self) -> None:
        made = launcher_template(parsed(), SETTINGS)

        assert made["metadata"]["labels"] == {
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": "train",
            "training.kubeflow.org/job-role": "launcher",
            "group-name": "kubeflow.org",
            "mpi-job-name": "train",
            "mpi-job-role": "launcher",
        }
        outside = {name: value for name, value in made["spec"].items() if isinstance(value, str | bool)}
        assert outside == {
            "restartPolicy": "Never",
            "hostname": "train-launcher",
            "subdomain": "train",
            "serviceAccountName": "train-launcher",
            "automountServiceAccountToken": True,
        }

    def test_its_main_container(self) -> None:
        made = main()

        assert made["volumeMounts"] == [
            {"name": "mpi-job-config", "mountPath": "/etc/mpi"},
            {"name": "mpirt-runtime", "mountPath": "/opt/mpirt"},
        ]
        assert made["terminationMessagePolicy"] == "FallbackToLogsOnError"

    def test_its_command_runs_under_a_first_process_of_ours(self) -> None:
        given = template(container("mpi", command=["mpirun", "-n", "2"], args=["train"]))

        made = main(launcher=given)

        assert made["command"] == ["/opt/mpirt/bin/mpirt-init", "mpirun", "-n", "2"]
        assert made["args"] == ["train"]

    def test_a_command_is_left_alone_that_only_the_image_knows_or_without_the_runtime_folder(self) -> None:
        assert "command" not in main(launcher=template(container("mpi")))

        made = pod(settings=Settings(runtime_image=""))["containers"][0]
        assert made["command"] == ["mpirun", "-n", "2", "/pi"]

    def test_the_command_of_a_job_that_copes_with_losses_is_left_alone(self) -> None:
        job = mpi_job()
        job["metadata"]["annotations"] = {"mpirt.dev/tolerates-lost-workers": "true"}

        made = launcher_template(MPI_JOB.parse(job), SETTINGS)["spec"]["containers"][0]

        assert made["command"] == ["mpirun", "-n", "2", "/pi"]

    def test_a_policy_of_the_users_for_last_words_stays(self) -> None:
        assert (
            main(launcher=template(container("mpi", terminationMessagePolicy="File")))["terminationMessagePolicy"]
            == "File"
        )

    def test_its_volumes(self) -> None:
        assert pod()["volumes"] == [
            {
                "name": "mpi-job-config",
                "configMap": {
                    "name": "train-config",
                    "items": [
                        {"key": "hostfile", "path": "hostfile", "mode": 0o444},
                        {"key": "kubexec.sh", "path": "kubexec.sh", "mode": 0o555},
                        {"key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555},
                    ],
                },
            },
            {"name": "mpirt-runtime", "emptyDir": {}},
        ]

    def test_the_users_own_account_is_kept(self) -> None:
        assert pod(launcher=template(container("mpi"), serviceAccountName="ann"))["serviceAccountName"] == "ann"

    def test_on_the_hosts_network_it_asks_the_clusters_dns(self) -> None:
        made = pod(launcher=template(container("mpi"), hostNetwork=True))

        assert made["dnsPolicy"] == "ClusterFirstWithHostNet"

    @pytest.mark.parametrize("mpi", ["MPICH", "Intel"])
    def test_with_hydra_it_finds_the_workers_names_for_published_images_look_them_up_first(self, mpi: str) -> None:
        made = pod(mpiImplementation=mpi)

        assert made["dnsConfig"] == {"searches": ["train.ml.svc.cluster.local"]}
        on_host = pod(mpiImplementation=mpi, launcher=template(container("mpi"), hostNetwork=True))
        assert "dnsConfig" not in on_host

    def test_a_launcher_that_works_too_has_the_label_of_rank_0(self) -> None:
        label = "training.kubeflow.org/replica-index"

        assert launcher_template(parsed(runLauncherAsWorker=True), SETTINGS)["metadata"]["labels"][label] == "0"
        assert label not in launcher_template(parsed(), SETTINGS)["metadata"]["labels"]

    def test_a_sidecar_is_untouched(self) -> None:
        sidecar = container("proxy")

        assert pod(launcher=template(container("mpi"), sidecar))["containers"][1] == sidecar


SELECTOR = (
    "training.kubeflow.org/operator-name=mpi-operator,training.kubeflow.org/job-name=train,"
    "training.kubeflow.org/job-role=worker"
)
HELPER = {
    "image": "mpirt-runtime:1",
    "volumeMounts": [{"name": "mpirt-runtime", "mountPath": "/opt/mpirt"}],
    "resources": {"requests": {"cpu": "200m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}},
    "terminationMessagePolicy": "FallbackToLogsOnError",
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}


WAITS = ["--wait", "$(MPIRT_WORKERS_NEEDED)", "--timeout", "604800"]
ELASTIC: dict[str, Any] = {"elastic": {"minReplicas": 1}}


def helper_resources(main: dict[str, Any]) -> dict[str, Any]:
    """What our container gets beside a main one with these."""
    made = pod(launcher=template(container("mpi", resources=main)))
    (helper,) = made["initContainers"]
    found: dict[str, Any] = helper["resources"]
    return found


class TestBeforeItStarts:
    def test_one_container_delivers_the_runtime(self) -> None:
        assert pod()["initContainers"] == [{"name": "mpirt-runtime", **HELPER, "args": ["/opt/mpirt"]}]

    def test_of_an_elastic_job_it_also_waits_for_the_first_workers(self) -> None:
        (made,) = pod(**ELASTIC)["initContainers"]

        assert (made["name"], made["image"]) == ("mpirt-wait", "mpirt-runtime:1")
        # The image starts the program that delivers.
        assert "command" not in made
        assert made["args"] == ["/opt/mpirt", "--", "/opt/mpirt/bin/mpirt-discover", *WAITS]
        assert [each["name"] for each in made["env"]] == ["MPIRT_SELECTOR", "MPIRT_WORKERS_NEEDED"]

    @pytest.mark.parametrize(
        ("main", "cpu"),
        [
            pytest.param({}, {"requests": "200m", "limits": None}, id="nothing: no limit"),
            pytest.param({"requests": {"cpu": 2}}, {"requests": "200m", "limits": None}, id="a request: no limit"),
            pytest.param({"limits": {"cpu": "4"}}, {"requests": "4", "limits": "4"}, id="guaranteed by a limit"),
            pytest.param(
                {"requests": {"cpu": "1500m"}, "limits": {"cpu": "1.5"}},
                {"requests": "1500m", "limits": "1500m"},
                id="guaranteed by both",
            ),
            pytest.param(
                {"requests": {"cpu": "0.5"}, "limits": {"cpu": 4}},
                {"requests": "500m", "limits": "4"},
                id="burstable",
            ),
            pytest.param({"limits": {"cpu": "10m"}}, {"requests": "200m", "limits": "200m"}, id="very little"),
            pytest.param(
                {"requests": None, "limits": {"cpu": None}}, {"requests": "200m", "limits": None}, id="nulls"
            ),
        ],
    )
    def test_it_may_use_as_much_cpu_as_the_main_container(
        self, main: dict[str, Any], cpu: dict[str, str | None]
    ) -> None:
        made = helper_resources(main)

        assert {part: found.get("cpu") for part, found in made.items()} == cpu
        assert {part: found["memory"] for part, found in made.items()} == {"requests": "128Mi", "limits": "128Mi"}

    def test_around_those_of_the_user_the_runtime_comes_first_and_the_wait_last(self) -> None:
        own = container("fetch")

        given = template(container("mpi"), initContainers=[own])
        runtime = {"name": "mpirt-runtime", **HELPER, "args": ["/opt/mpirt"]}

        assert pod(launcher=given)["initContainers"] == [runtime, own]
        assert pod(launcher=given, **ELASTIC)["initContainers"] == [
            runtime,
            own,
            {
                "name": "mpirt-wait",
                **HELPER,
                "command": ["/opt/mpirt/bin/mpirt-discover"],
                "args": WAITS,
                "env": [
                    {"name": "MPIRT_SELECTOR", "value": SELECTOR},
                    {
                        "name": "MPIRT_WORKERS_NEEDED",
                        "valueFrom": {"configMapKeyRef": {"name": "train-config", "key": "workers-needed"}},
                    },
                ],
            },
        ]

    def test_helpers_run_as_the_launchers_user(self) -> None:
        context = {"runAsUser": 1000, "runAsGroup": 100, "runAsNonRoot": True, "privileged": False}

        for made in pod(launcher=template(container("mpi", securityContext=context)))["initContainers"]:
            assert made["securityContext"] == {
                **HELPER["securityContext"],  # type: ignore[dict-item]  # a mapping, as stands above
                "runAsUser": 1000,
                "runAsGroup": 100,
                "runAsNonRoot": True,
            }

    def test_without_a_runtime_image_the_launchers_own_programs_are_used(self) -> None:
        assert pod(settings=Settings(runtime_image=""))["initContainers"] == []
        made = pod(settings=Settings(runtime_image=""), **ELASTIC)

        (wait,) = made["initContainers"]
        assert (wait["image"], wait["command"], wait["volumeMounts"]) == ("mpi:4", ["mpirt-discover"], [])
        assert [volume["name"] for volume in made["volumes"]] == ["mpi-job-config"]
        assert [mount["name"] for mount in made["containers"][0]["volumeMounts"]] == ["mpi-job-config"]


class TestItsEnvironment:
    COMMON = {  # noqa: RUF012  a literal
        "K_MPI_JOB_ROLE": "launcher",
        "MPIRT_SELECTOR": SELECTOR,
        "MPIRT_CONTAINER": "worker",
        "MPIRT_FENCE": "uid-of-train",
        "MPIRT_ACCOUNT": "/dev/termination-log",
        "MPIRT_WAIT": "604800",
    }
    NO_GPU = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}  # noqa: RUF012  a literal

    @pytest.mark.parametrize(
        ("job", "variables"),
        [
            pytest.param(
                {"slotsPerWorker": 4},
                {
                    "OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh",
                    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
                    "OMPI_MCA_orte_leave_session_attached": "1",
                    "OMPI_MCA_plm_rsh_num_concurrent": "100000",
                    "OMPI_MCA_hwloc_base_binding_policy": "none",
                    "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
                    "OMPI_MCA_orte_set_default_slots": "4",
                    "PRTE_MCA_plm_ssh_agent": "/etc/mpi/kubexec.sh",
                    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
                    "PRTE_MCA_prte_leave_session_attached": "1",
                    "PRTE_MCA_plm_ssh_num_concurrent": "100000",
                    "PRTE_MCA_hwloc_default_binding_policy": "none",
                    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
                    "PRTE_MCA_prte_set_default_slots": "4",
                },
                id="Open MPI of both kinds",
            ),
            pytest.param(
                {"mpiImplementation": "MPICH"},
                {
                    "HYDRA_LAUNCHER": "rsh",
                    "HYDRA_LAUNCHER_EXEC": "/etc/mpi/kubexec.sh",
                    "HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                },
                id="MPICH",
            ),
            pytest.param(
                {"mpiImplementation": "Intel", "slotsPerWorker": 2},
                {
                    "I_MPI_HYDRA_BOOTSTRAP": "rsh",
                    "I_MPI_HYDRA_BOOTSTRAP_EXEC": "/etc/mpi/kubexec.sh",
                    "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                    "I_MPI_PERHOST": "2",
                    "I_MPI_HYDRA_BRANCH_COUNT": "0",
                    "I_MPI_PIN": "0",
                },
                id="Intel MPI",
            ),
        ],
    )
    def test_is_that_of_the_mpi(self, job: dict[str, Any], variables: dict[str, str]) -> None:
        assert environment(**job) == {**self.COMMON, **variables, **self.NO_GPU}

    def test_a_launcher_that_works_too_keeps_its_gpus(self) -> None:
        assert environment(runLauncherAsWorker=True).keys().isdisjoint(self.NO_GPU)

    def test_the_workers_container_is_named(self) -> None:
        worker = template(container("proxy"), container("gpu"))

        assert environment(worker=worker, mainContainer="gpu")["MPIRT_CONTAINER"] == "gpu"

    def test_what_the_user_has_set_wins(self) -> None:
        own = [{"name": "OMPI_MCA_plm_rsh_agent", "value": "ssh"}, {"name": "MPIRT_FENCE", "value": ""}]

        made = environment(launcher=template(container("mpi", env=own)))

        assert (made["OMPI_MCA_plm_rsh_agent"], made["MPIRT_FENCE"]) == ("ssh", "")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"launcher": template(container("mpi", command=["other"]))}, id="its template"),
        pytest.param({"slotsPerWorker": 2}, id="slots"),
        pytest.param({"mpiImplementation": "Intel"}, id="the MPI"),
        pytest.param({"runLauncherAsWorker": True}, id="that it works, too"),
        pytest.param({"runPolicy": {"schedulingPolicy": {"queue": "q"}}}, id="the queue"),
    ],
)
def test_these_changes_make_it_another_launcher(change: dict[str, Any]) -> None:
    assert parsed(**change).launcher_digest != parsed().launcher_digest


def test_digests_are_those_of_earlier_versions_so_that_an_upgrade_replaces_no_pod() -> None:
    policy = {"queue": "gpu", "priorityClass": "high", "minAvailable": 3, "minResources": {"cpu": 2}}
    sshd = container("worker", args=["/usr/sbin/sshd", "-De"], readinessProbe={"tcpSocket": {"port": 2222}})
    worker = template(sshd, schedulerName="volcano", metadata={"labels": {"tier": "gpu"}})
    job = parsed(
        slotsPerWorker=2, mpiImplementation="MPICH", worker=worker, runPolicy={"schedulingPolicy": policy}
    )

    assert (job.worker_digest, job.launcher_digest) == ("ae84c808e1d4eba2", "2f27dc36d7ea9fa9")
    assert (parsed().worker_digest, parsed().launcher_digest) == ("602cfe063e210bea", "dba709aedaf6b663")


def test_another_number_of_workers_makes_it_no_other_launcher() -> None:
    assert parsed(replicas=7, runPolicy={"backoffLimit": 1}).launcher_digest == parsed().launcher_digest
