"""Each kind of job is run where it is served, whatever the API server says of the other kinds."""

from __future__ import annotations

from typing import Any

from testbed.kube.wait import until
from tests.apiserver.objects import ObjectServer
from tests.apiserver.storage import Place
from tests.protocol.controller.process import JOB, WITHIN, Start, job

WORDS = ("--no-lease", "--log-format=json")

KAI = {"kai.alibabacloud.com/v1alpha1": ("trainingjobs", "scaleins", "scaleouts")}
# What Arena installs: its MPIJobs have a version of their own, and tfjobs are in the same group.
ARENA = {**KAI, "kubeflow.org/v1alpha1": ("mpijobs",), "kubeflow.org/v1": ("tfjobs",)}
OURS = {**KAI, "falldio.com/v1": ("gputasks",), "kubeflow.org/v2beta1": ("mpijobs",)}

TRAINING = Place("trainingjobs", "ml", "elastic")
WORKERS = ["ml/elastic-worker-0", "ml/elastic-worker-1"]
KINDS = ("MPIJob", "TrainingJob", "GPUTask", "ScaleIn", "ScaleOut")
APPLY = "apply the CRD, for example with: kubectl apply -k crds/"
OTHER_VERSION = (
    "the API server serves MPIJob as kubeflow.org/v1alpha1 only, which this controller can't run; "
    'it needs kubeflow.org/v2beta1 or kubeflow.org/v1: see "Other CRDs" in docs/operations.md'
)


def training_job() -> dict[str, Any]:
    """A job of two workers."""
    template = {"template": {"spec": {"containers": [{"name": "main", "image": "horovod"}]}}}
    return {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "elastic", "namespace": "ml"},
        "spec": {"etReplicaSpecs": {"launcher": template, "worker": {"replicas": 2, **template}}},
    }


def wait_for_workers(server: ObjectServer) -> None:
    until(
        lambda: server.storage.names("pods") == WORKERS,
        within=WITHIN,
        what="the workers of the TrainingJob",
        instead=lambda: server.storage.names("pods"),
    )


def test_training_jobs_run_where_mpijobs_have_a_version_of_somebody_else(
    server: ObjectServer, start: Start
) -> None:
    server.crds = ARENA
    server.storage.create(TRAINING, training_job())
    controller = start(*WORDS)

    wait_for_workers(server)

    assert controller.page("/readyz") == (
        200,
        f"ok\n{OTHER_VERSION}\nthe API server serves no GPUTask of falldio.com/v1; {APPLY}\n",
    )
    [line] = controller.lines("doing without a kind", kind="MPIJob")
    assert (line["level"], line["error"]) == ("warning", OTHER_VERSION)
    [line] = controller.lines("acting")
    assert line["kinds"] == "TrainingJob"


def test_a_kind_whose_crd_comes_later_or_gets_a_version_is_run_without_a_restart(
    server: ObjectServer, start: Start
) -> None:
    server.crds = {"kubeflow.org/v1alpha1": ("mpijobs",)}
    controller = start(*WORDS)
    controller.wait_until_it_says("acting")
    server.storage.create(JOB, job())
    server.storage.create(TRAINING, training_job())

    server.crds = OURS

    wait_for_workers(server)
    until(lambda: server.storage.names("statefulsets"), within=WITHIN, what="the workers of the MPIJob")
    until(lambda: "MPIJob" not in controller.page("/readyz")[1], within=WITHIN, what="nothing about MPIJobs")


def test_a_kind_that_cannot_be_listed_holds_up_no_other(server: ObjectServer, start: Start) -> None:
    server.crds = OURS
    said = "conversion webhook for kubeflow.org/v1, Kind=MPIJob failed: no endpoints available"
    server.refuse("list", "mpijobs", 500, "InternalError", said, times=1000)
    server.storage.create(TRAINING, training_job())
    controller = start(*WORDS)

    wait_for_workers(server)

    assert controller.page("/readyz") == (503, f"mpijobs are not listed yet: {said}\n")


def test_training_jobs_wait_for_their_scalers_and_other_jobs_do_not(server: ObjectServer, start: Start) -> None:
    server.crds = OURS
    server.refuse("list", "scaleins", 500, "InternalError", "the webhook is down", times=3)
    server.storage.create(TRAINING, training_job())
    server.storage.create(JOB, job())
    start(*WORDS)

    wait_for_workers(server)

    requests = server.asked()
    listed = [number for number, request in enumerate(requests) if request == ("list", "scaleins")]
    assert len(listed) == 4
    assert requests.index(("create", "statefulsets")) < listed[-1] < requests.index(("create", "pods"))


def test_a_controller_is_not_ready_while_no_kind_of_job_is_served(server: ObjectServer, start: Start) -> None:
    server.crds = {}
    controller = start(*WORDS)
    controller.wait_until_it_says("acting")

    code, page = controller.page("/readyz")

    assert code == 503
    without, *reasons = page.splitlines()
    assert without == "no kind of job is served"
    assert [reason.split()[5] for reason in reasons] == list(KINDS)


def test_the_metrics_say_which_kinds_are_available(server: ObjectServer, start: Start) -> None:
    server.crds = ARENA
    controller = start(*WORDS)
    controller.wait_until_it_says("acting")

    _, page = controller.page("/metrics")

    name = "mpirt_controller_kind_available"
    found = dict(line.rsplit(" ", 1) for line in page.splitlines() if line.startswith(name))
    assert found == {
        f'{name}{{kind="MPIJob"}}': "0.0",
        f'{name}{{kind="TrainingJob"}}': "1.0",
        f'{name}{{kind="GPUTask"}}': "0.0",
        f'{name}{{kind="ScaleIn"}}': "1.0",
        f'{name}{{kind="ScaleOut"}}': "1.0",
    }


def test_the_metrics_say_for_how_long_a_kind_could_not_be_read(server: ObjectServer, start: Start) -> None:
    server.crds = OURS
    server.refuse("list", "mpijobs", 500, "InternalError", "exceeded max depth", times=1000)
    controller = start(*WORDS)
    controller.wait_until_it_says("acting")

    def failing() -> set[str]:
        name = "mpirt_controller_watch_failing_seconds"
        lines = [line for line in controller.page("/metrics")[1].splitlines() if line.startswith(name)]
        assert len(lines) > len(KINDS)
        return {line.removeprefix(name) for line in lines if not line.endswith(" 0.0")}

    until(failing, within=WITHIN, what="a kind that fails")
    [line] = failing()

    assert line.startswith('{kind="MPIJob"} ')
