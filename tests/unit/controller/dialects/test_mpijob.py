"""An MPIJob is read once, an invalid field is reported with its path, and its status is written and read back."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.model.attempts import History
from mpirt.controller.model.conditions import Condition, Counts, JobStatus, Type
from mpirt.controller.model.spec import (
    CleanPods,
    Creation,
    Elastic,
    Implementation,
    JobKey,
    Owner,
    RunPolicy,
    Scheduling,
)
from mpirt.errors import SpecError
from tests.unit.controller.badspecs import BAD, Change, bad_job, put
from tests.unit.controller.jobs import NOON, UID, at, container, mpi_job, parsed, template, time

_ALONE = "only sshd would answer it, and sshd is not started"
_NO_SSHD = "sshd is not started: nothing connects by ssh; the container waits instead"
_ALWAYS = "has no effect: workers are pods of a StatefulSet, which are always restarted"
_AS_ON_FAILURE = "is treated as OnFailure: every failure is retried, up to runPolicy.backoffLimit times"
_CONTAINERS = "Worker.template.spec.containers"


class TestWhatIsRead:
    def test_a_plain_job(self) -> None:
        spec = parsed()

        assert spec.owner == Owner("kubeflow.org/v2beta1", "MPIJob", JobKey("MPIJob", "ml", "train"), UID)
        assert str(spec.key) == "ml/train"
        assert (spec.implementation, spec.slots, spec.notices) == (Implementation.OPEN_MPI, 1, ())
        assert (spec.workers.replicas, spec.workers.elastic, spec.workers.needed) == (2, None, 2)
        assert spec.workers.template.main == "worker"
        assert (spec.launcher.creation, spec.launcher.works_too) == (Creation.WHEN_READY, False)
        assert spec.run == RunPolicy(CleanPods.NONE, ttl=None, deadline=None, retries=6, suspended=False)
        assert spec.scheduling is None

    def test_a_job_with_every_field(self) -> None:
        spec = parsed(
            slotsPerWorker=4,
            mpiImplementation="MPICH",
            launcherCreationPolicy="AtStartup",
            runLauncherAsWorker=True,
            sshAuthMountPath="/root/.ssh",
            elastic={"minReplicas": 1, "maxReplicas": 8},
            runPolicy={
                "cleanPodPolicy": "Running",
                "ttlSecondsAfterFinished": 0,
                "activeDeadlineSeconds": 60,
                "backoffLimit": 0,
                "suspend": True,
                "managedBy": "kubeflow.org/mpi-operator",
                "schedulingPolicy": {
                    "minAvailable": 2,
                    "queue": "gpu",
                    "priorityClass": "high",
                    "minResources": {"cpu": 2},
                    "scheduleTimeoutSeconds": 30,
                },
            },
        )

        assert (spec.slots, spec.implementation) == (4, Implementation.MPICH)
        assert (spec.launcher.creation, spec.launcher.works_too) == (Creation.AT_STARTUP, True)
        assert (spec.workers.elastic, spec.workers.needed) == (Elastic(1, 8), 1)
        assert spec.run == RunPolicy(CleanPods.RUNNING, ttl=0, deadline=60, retries=0, suspended=True)
        assert spec.scheduling == Scheduling(
            least=2, queue="gpu", priority_class="high", timeout=30, resources={"cpu": "2"}
        )

    def test_workers_are_one_where_nothing_is_said(self) -> None:
        job = mpi_job()
        del job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]

        assert MPI_JOB.parse(job).workers.replicas == 1

    @pytest.mark.parametrize(
        ("elastic", "read"),
        [
            pytest.param({}, Elastic(1, 2), id="nothing said"),
            pytest.param({"minReplicas": 2}, Elastic(2, 2), id="at least"),
            pytest.param({"maxReplicas": 5}, Elastic(1, 5), id="at most"),
        ],
    )
    def test_elastic_bounds_have_defaults(self, elastic: dict[str, int], read: Elastic) -> None:
        assert parsed(elastic=elastic).workers.elastic == read

    def test_what_version_one_had_at_the_top_counts(self) -> None:
        job = mpi_job(
            worker=template(container("proxy"), container("gpu")), cleanPodPolicy="All", mainContainer="gpu"
        )

        spec = MPI_JOB.parse({**job, "apiVersion": "kubeflow.org/v1"})

        assert (spec.run.clean, spec.workers.template.main) == (CleanPods.ALL, "gpu")
        assert spec.launcher.template.main == "mpi"

    def test_the_main_container_is_the_launchers_too_if_it_has_one_of_the_name(self) -> None:
        both = template(container("proxy"), container("mpi"))

        spec = parsed(launcher=both, worker=both, mainContainer="mpi")

        assert (spec.launcher.template.main, spec.workers.template.main) == ("mpi", "mpi")

    def test_else_it_is_the_one_that_kubectl_would_take(self) -> None:
        annotations = {"kubectl.kubernetes.io/default-container": "mpi"}

        worker = template(container("proxy"), container("mpi"), metadata={"annotations": annotations})

        assert parsed(worker=worker).workers.template.main == "mpi"


class TestAJobWithoutWorkers:
    @pytest.mark.parametrize(
        "absent", [pytest.param(False, id="there is no Worker"), pytest.param(True, id="null")]
    )
    def test_runs_in_its_launcher_alone(self, *, absent: bool) -> None:
        job = mpi_job(runLauncherAsWorker=True)
        replicas = job["spec"]["mpiReplicaSpecs"]
        del replicas["Worker"]
        if absent:
            replicas["Worker"] = None

        spec = MPI_JOB.parse(job)

        assert (spec.has_workers, spec.workers.replicas, spec.workers.needed) == (False, 0, 0)
        assert spec.launcher.works_too

    def test_may_name_the_launchers_main_container(self) -> None:
        job = mpi_job(launcher=template(container("proxy"), container("mpi")), mainContainer="mpi")
        del job["spec"]["mpiReplicaSpecs"]["Worker"]

        assert MPI_JOB.parse(job).launcher.template.main == "mpi"


class TestWhoActs:
    @pytest.mark.parametrize(
        ("policy", "is_ours"),
        [
            pytest.param({}, True, id="no manager"),
            pytest.param({"managedBy": ""}, True, id="an empty manager"),
            pytest.param({"managedBy": "kubeflow.org/mpi-operator"}, True, id="who it was written for"),
            pytest.param({"managedBy": "kubeflow.org/training-operator"}, True, id="who v1 was written for"),
            pytest.param({"managedBy": "mpirt.dev/controller"}, True, id="ours"),
            pytest.param({"managedBy": "kueue.x-k8s.io/multikueue"}, False, id="another"),
        ],
    )
    def test_the_manager_that_is_named(self, policy: dict[str, str], *, is_ours: bool) -> None:
        assert MPI_JOB.is_ours(mpi_job(runPolicy=policy)) is is_ours


class TestWhatCantBeMeant:
    @pytest.mark.parametrize(
        ("path", "value", "notices"),
        [
            pytest.param(
                "Worker.restartPolicy", "Never", [f"Never {_ALWAYS}"], id="workers that are not restarted"
            ),
            pytest.param(
                "Worker.template.spec.restartPolicy", "OnFailure", [f"OnFailure {_ALWAYS}"], id="in the template"
            ),
            pytest.param(
                "Launcher.restartPolicy",
                "ExitCode",
                [f"ExitCode {_AS_ON_FAILURE}"],
                id="retries by exit code",
            ),
            pytest.param(
                "Launcher.template.spec.automountServiceAccountToken",
                False,
                ["the launcher gets a token, because it starts commands in workers"],
                id="a launcher without a token",
            ),
            pytest.param(f"{_CONTAINERS}.0.command", ["/usr/sbin/sshd"], [_NO_SSHD], id="sshd"),
            pytest.param(
                f"{_CONTAINERS}.0",
                container("worker", args=["sshd"], command=None, readinessProbe={"tcpSocket": {"port": 22}}),
                [_NO_SSHD, f"readinessProbe of port 22 is removed: {_ALONE}"],
                id="sshd and a probe of its port",
            ),
        ],
    )
    def test_it_is_noticed(self, path: str, value: Any, notices: list[str]) -> None:
        job = mpi_job()
        put(f"spec/mpiReplicaSpecs/{path.replace('.', '/')}", value)(job)

        place = f"{_CONTAINERS}, worker" if path.startswith(_CONTAINERS) else path
        assert MPI_JOB.parse(job).notices == tuple(f"spec.mpiReplicaSpecs.{place}: {one}" for one in notices)

    def test_two_clean_up_policies_that_disagree(self) -> None:
        spec = parsed(cleanPodPolicy="All", runPolicy={"cleanPodPolicy": "None"})

        assert spec.run.clean is CleanPods.NONE
        assert spec.notices == ("spec.cleanPodPolicy: All is overruled by spec.runPolicy.cleanPodPolicy: None",)

    def test_workers_that_always_restart_are_what_they_are(self) -> None:
        job = mpi_job()
        job["spec"]["mpiReplicaSpecs"]["Worker"]["restartPolicy"] = "Always"

        assert MPI_JOB.parse(job).notices == ()


class TestWhatCantBe:
    @pytest.mark.parametrize(("change", "field", "problem"), [pytest.param(*rest, id=name) for name, *rest in BAD])
    def test_it_is_refused_with_the_fields_path(self, change: Change, field: str, problem: str) -> None:
        with pytest.raises(SpecError) as caught:
            MPI_JOB.parse(bad_job(change))

        assert caught.value.field == field
        assert problem in caught.value.problem

    def test_there_are_fifty_of_them_at_least(self) -> None:
        assert len({name for name, *_ in BAD}) >= 50

    def test_a_long_wrong_value_is_cut(self) -> None:
        with pytest.raises(SpecError) as caught:
            parsed(mpiImplementation="x" * 500)

        assert len(str(caught.value)) < 200


KEY = JobKey("MPIJob", "ml", "train")


def condition(kind: Type, *, status: bool, reason: str = "Because") -> Condition:
    return Condition(kind, status, reason, "So it is.", at(1), at(2))


def test_it_is_written_in_the_published_shape() -> None:
    status = JobStatus(
        conditions={Type.RUNNING: condition(Type.RUNNING, status=True)},
        launcher=Counts(1, 0, 2),
        workers=Counts(3, 0, 0),
        started=NOON,
        written=at(9),
        history=History(),
    )

    assert MPI_JOB.write_status(status, KEY) == {
        "conditions": [
            {
                "type": "Running",
                "status": "True",
                "reason": "Because",
                "message": "So it is.",
                "lastTransitionTime": time(1),
                "lastUpdateTime": time(2),
            }
        ],
        "replicaStatuses": {
            "Launcher": {
                "active": 1,
                "succeeded": 0,
                "failed": 2,
                "selector": "training.kubeflow.org/operator-name=mpi-operator,"
                "training.kubeflow.org/job-name=train,training.kubeflow.org/job-role=launcher",
            },
            "Worker": {
                "active": 3,
                "succeeded": 0,
                "failed": 0,
                "selector": "training.kubeflow.org/operator-name=mpi-operator,"
                "training.kubeflow.org/job-name=train,training.kubeflow.org/job-role=worker",
            },
        },
        "startTime": time(0),
        "lastReconcileTime": time(9),
        "attempts": [],
    }


def test_what_holds_now_is_the_last_condition() -> None:
    conditions = [
        condition(Type.CREATED, status=True),
        condition(Type.RUNNING, status=False),
        condition(Type.SUCCEEDED, status=True),
        condition(Type.FAILED, status=False),
    ]

    written = MPI_JOB.write_status(JobStatus(conditions={one.type: one for one in conditions}), KEY)

    rows = written["conditions"]
    assert isinstance(rows, list)
    assert [row["type"] for row in rows] == ["Running", "Failed", "Created", "Succeeded"]


def test_it_is_read_back_as_it_was_written() -> None:
    status = JobStatus(
        conditions={
            Type.FAILED: condition(Type.FAILED, status=True),
            Type.RUNNING: condition(Type.RUNNING, status=False),
        },
        launcher=Counts(0, 0, 7),
        workers=Counts(2, 0, 1),
        started=NOON,
        completed=at(60),
        written=at(61),
        history=History(),
    )

    assert MPI_JOB.read_status({**mpi_job(), "status": MPI_JOB.write_status(status, KEY)}) == status


def test_a_job_without_a_status_has_an_empty_one() -> None:
    assert MPI_JOB.read_status(mpi_job()) == JobStatus()


def test_conditions_by_another_hand_are_let_be() -> None:
    rows = [
        {"type": "Blessed", "status": "True"},
        {"type": "Created", "status": "True"},
        {"type": "Running", "status": "False", "lastTransitionTime": "yesterday"},
    ]

    status = MPI_JOB.read_status({**mpi_job(), "status": {"conditions": rows, "startTime": 7}})

    assert list(status.conditions) == [Type.CREATED, Type.RUNNING]
    assert status.conditions[Type.RUNNING].changed.year == 1970


def test_of_a_job_of_another_controller_no_history_is_written() -> None:
    assert "attempts" not in MPI_JOB.write_status(JobStatus(started=NOON), KEY)
