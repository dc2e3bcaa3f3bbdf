"""Which tolerations a pod gets beside those that the user wrote, and how it is a member of the job's PodGroup."""

from __future__ import annotations

from typing import Any

import pytest

from mpirt.controller.dialects.mpijob import MPI_JOB
from mpirt.controller.manifests.launcher import launcher_template
from mpirt.controller.manifests.pod_group import least_members, pod_group, pod_requests
from mpirt.controller.manifests.pods import with_tolerations
from mpirt.controller.manifests.workers import worker_template
from mpirt.controller.model.spec import Settings
from mpirt.errors import SpecError
from tests.unit.controller.jobs import SETTINGS, container, mpi_job, parsed, template

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def ours(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}


BOTH = [ours(NOT_READY), ours(UNREACHABLE)]
FOREVER = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param(None, BOTH, id="no tolerations"),
        pytest.param([], BOTH, id="an empty list"),
        pytest.param(
            [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}], BOTH, id="of others"
        ),
        pytest.param([{**FOREVER, "tolerationSeconds": 5}], BOTH[:1], id="the user's own, for 5 s"),
        pytest.param([FOREVER], BOTH[:1], id="the user's own, for ever"),
        pytest.param([{"key": UNREACHABLE, "operator": "Exists"}], BOTH[:1], id="the user's own, of every effect"),
        pytest.param([{"key": UNREACHABLE, "effect": "NoExecute"}], BOTH[:1], id="without an operator"),
        pytest.param([{"key": UNREACHABLE}], BOTH[:1], id="by the key alone"),
        pytest.param([{"operator": "Exists"}], [], id="of everything"),
        pytest.param([{**FOREVER, "effect": "NoSchedule"}], BOTH, id="of being scheduled there, not of staying"),
    ],
)
def test_taints_of_lost_nodes_are_tolerated_after_what_the_user_tolerates(given: Any, added: list[Any]) -> None:
    assert with_tolerations({"tolerations": given}) == [*(given or []), *added]
    assert with_tolerations({}) == BOTH


@pytest.mark.parametrize(
    ("written", "says"),
    [
        pytest.param({"key": "a"}, "tolerations: expected a list", id="no list"),
        pytest.param(["a"], r"tolerations\[0\]: expected an object", id="no object"),
        pytest.param([{"key": 1}], r"tolerations\[0\].key: expected text", id="no key"),
    ],
)
def test_what_is_no_toleration_is_reported_with_its_path(written: Any, says: str) -> None:
    with pytest.raises(SpecError, match=f"spec.mpiReplicaSpecs.Worker.template.spec.{says}"):
        parsed(worker=template({"name": "w", "image": "mpi:4"}, tolerations=written))


PLUGIN = Settings(runtime_image="mpirt-runtime:1", gang="co")
VOLCANO = Settings(runtime_image="mpirt-runtime:1", gang="volcano")
POD_GROUP = "scheduling.x-k8s.io/pod-group"
GROUP_NAME = "scheduling.k8s.io/group-name"


def made(settings: Settings, **job: Any) -> dict[str, Any]:
    spec, gang = parsed(**job), settings.gang_scheduler
    assert gang is not None
    return pod_group(spec, settings, gang, least_members(spec, settings))


def asking(name: str, **requests: str) -> dict[str, Any]:
    return container(name, resources={"requests": requests})


def test_the_group_of_the_coscheduling_plugin() -> None:
    group = made(PLUGIN, runPolicy={"schedulingPolicy": {"scheduleTimeoutSeconds": 30, "queue": "gpu"}})

    assert (group["apiVersion"], group["kind"]) == ("scheduling.x-k8s.io/v1alpha1", "PodGroup")
    assert group["metadata"]["name"] == "train"
    assert group["metadata"]["ownerReferences"][0]["name"] == "train"
    assert group["spec"] == {
        "minMember": 3,
        # Of the init containers that the controller adds to the launcher.
        "minResources": {"cpu": "200m", "memory": "128Mi"},
        "scheduleTimeoutSeconds": 30,
    }


@pytest.mark.parametrize("policy", [{}, {"scheduleTimeoutSeconds": 0}])
def test_without_a_timeout_the_plugin_uses_its_own(policy: dict[str, Any]) -> None:
    assert "scheduleTimeoutSeconds" not in made(PLUGIN, runPolicy={"schedulingPolicy": policy})["spec"]


def test_the_group_of_volcano() -> None:
    policy = {"queue": "gpu", "priorityClass": "high", "minResources": {"cpu": 2}, "scheduleTimeoutSeconds": 30}
    group = made(VOLCANO, runPolicy={"schedulingPolicy": policy})

    assert group["apiVersion"] == "scheduling.volcano.sh/v1beta1"
    assert group["spec"] == {
        "minMember": 3, "minResources": {"cpu": "2"}, "queue": "gpu", "priorityClassName": "high",
    }  # fmt: skip


def test_volcanos_priority_is_that_of_the_launcher_then_that_of_the_workers() -> None:
    worker = template(container("worker"), priorityClassName="low")
    launcher = template(container("mpi"), priorityClassName="high")

    assert made(VOLCANO, worker=worker)["spec"]["priorityClassName"] == "low"
    assert made(VOLCANO, worker=worker, launcher=launcher)["spec"]["priorityClassName"] == "high"


def test_volcanos_queue_may_be_in_the_jobs_annotations() -> None:
    job = mpi_job(runPolicy={"schedulingPolicy": {}})
    job["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "night"}
    spec, gang = MPI_JOB.parse(job), VOLCANO.gang_scheduler
    assert gang is not None

    assert pod_group(spec, VOLCANO, gang, 3)["spec"]["queue"] == "night"


@pytest.mark.parametrize(
    ("policy", "job", "least"),
    [
        pytest.param({}, {"replicas": 4}, 5, id="all workers and the launcher"),
        pytest.param({}, {"replicas": 4, "elastic": {"minReplicas": 2}}, 3, id="what an elastic job needs"),
        pytest.param({"minAvailable": 2}, {"replicas": 4}, 2, id="fewer, if the job says so"),
        pytest.param({"minAvailable": 9}, {"replicas": 4}, 5, id="never more than there are"),
    ],
)
def test_how_many_start_together(policy: dict[str, Any], job: dict[str, Any], least: int) -> None:
    spec = parsed(runPolicy={"schedulingPolicy": policy}, **job)

    assert least_members(spec, PLUGIN) == least


class TestMembers:
    @pytest.mark.parametrize(
        ("settings", "labels", "annotations"),
        [
            pytest.param(PLUGIN, {POD_GROUP: "train"}, {}, id="of the plugin's"),
            pytest.param(VOLCANO, {}, {GROUP_NAME: "train"}, id="of Volcano's"),
        ],
    )
    def test_both_templates_become_members_of_the_group(
        self, settings: Settings, labels: dict[str, str], annotations: dict[str, str]
    ) -> None:
        for pod in (worker_template(parsed(), settings), launcher_template(parsed(), settings)):
            metadata = pod["metadata"]
            assert {name: metadata["labels"][name] for name in metadata["labels"] if name == POD_GROUP} == labels
            found = {name: text for name, text in metadata["annotations"].items() if name == GROUP_NAME}
            assert found == annotations
            assert pod["spec"]["schedulerName"] == settings.gang

    def test_without_a_gang_scheduler_nothing_is_set(self) -> None:
        policy = {"schedulingPolicy": {"minAvailable": 3, "queue": "gpu", "minResources": {"cpu": "2"}}}
        for pod in (
            worker_template(parsed(runPolicy=policy), SETTINGS),
            launcher_template(parsed(runPolicy=policy), SETTINGS),
        ):
            assert not {POD_GROUP, GROUP_NAME} & {*pod["metadata"]["labels"], *pod["metadata"]["annotations"]}
            assert "schedulerName" not in pod["spec"]
        assert least_members(parsed(runPolicy=policy), SETTINGS) == 0

    def test_a_launcher_with_another_scheduler_is_no_member(self) -> None:
        spec = parsed(launcher=template(container("mpi"), schedulerName="default-scheduler"))

        assert least_members(spec, PLUGIN) == 2
        assert POD_GROUP not in launcher_template(spec, PLUGIN)["metadata"]["labels"]
        assert POD_GROUP in worker_template(spec, PLUGIN)["metadata"]["labels"]

    def test_workers_with_another_scheduler_leave_no_group(self) -> None:
        spec = parsed(worker=template(container("worker"), schedulerName="default-scheduler"))

        assert least_members(spec, PLUGIN) == 0
        assert POD_GROUP not in launcher_template(spec, PLUGIN)["metadata"]["labels"]

    def test_a_launcher_without_workers_needs_no_group(self) -> None:
        job = mpi_job()
        del job["spec"]["mpiReplicaSpecs"]["Worker"]
        spec = MPI_JOB.parse(job)

        assert least_members(spec, PLUGIN) == 0
        assert "schedulerName" not in launcher_template(spec, PLUGIN)["spec"]

    def test_a_gang_scheduler_replaces_no_pods_of_jobs_that_run(self) -> None:
        """Digests decide, and they don't cover it: pods join a group only when they are created anew."""
        assert (
            parsed().worker_digest
            == worker_template(parsed(), PLUGIN)["metadata"]["annotations"]["mpirt.dev/template"]
        )


class TestRequests:
    def test_the_members_needs_are_added_up(self) -> None:
        launcher = template(asking("mpi", cpu="500m", memory="1Gi"))
        worker = template(asking("worker", cpu="2", memory="4Gi", **{"nvidia.com/gpu": "8"}))

        group = made(PLUGIN, launcher=launcher, worker=worker, replicas=3)

        assert group["spec"]["minResources"] == {"cpu": "6500m", "memory": "13Gi", "nvidia.com/gpu": "24"}

    def test_only_of_those_that_start_together(self) -> None:
        policy = {"schedulingPolicy": {"minAvailable": 2}}
        worker = template(asking("worker", cpu="2"))

        group = made(
            PLUGIN, worker=worker, launcher=template(asking("mpi", cpu="1")), replicas=3, runPolicy=policy
        )

        assert group["spec"]["minResources"]["cpu"] == "3"

    def test_members_that_need_nothing(self) -> None:
        launcher = template(container("mpi"), schedulerName="default-scheduler")

        assert "minResources" not in made(PLUGIN, launcher=launcher)["spec"]

    @pytest.mark.parametrize(
        ("pod", "cpu"),
        [
            pytest.param(
                {"containers": [asking("a", cpu="1"), asking("b", cpu="500m")]}, "1500m", id="containers"
            ),
            pytest.param(
                {"containers": [container("a", resources={"limits": {"cpu": "2"}})]}, "2", id="a limit alone"
            ),
            pytest.param(
                {"containers": [asking("a", cpu="1")], "initContainers": [asking("i", cpu="3")]}, "3", id="a start"
            ),
            pytest.param(
                {
                    "containers": [asking("a", cpu="1")],
                    "initContainers": [
                        {**asking("s", cpu="1"), "restartPolicy": "Always"},
                        asking("i", cpu="500m"),
                    ],
                },
                "2",
                id="a sidecar",
            ),
            pytest.param(
                {"containers": [asking("a", cpu="1")], "overhead": {"cpu": "100m"}}, "1100m", id="overhead"
            ),
        ],
    )
    def test_what_a_pod_needs(self, pod: dict[str, Any], cpu: str) -> None:
        assert pod_requests(pod) == {"cpu": cpu}


def test_the_policys_priority_is_that_of_pods_whose_template_has_none() -> None:
    policy = {"schedulingPolicy": {"priorityClass": "high"}}
    low = template(container("worker"), priorityClassName="low")

    assert worker_template(parsed(runPolicy=policy), SETTINGS)["spec"]["priorityClassName"] == "high"
    assert worker_template(parsed(runPolicy=policy, worker=low), SETTINGS)["spec"]["priorityClassName"] == "low"


@pytest.mark.parametrize(
    ("settings", "installed"),
    [(PLUGIN, "install the coscheduling plugin's CRD, or run"), (VOLCANO, "install Volcano, or run")],
)
def test_a_gang_scheduler_that_is_not_installed_has_a_remedy(settings: Settings, installed: str) -> None:
    gang = settings.gang_scheduler
    assert gang is not None

    assert gang.remedy.startswith(f"{installed} the controller without --gang-scheduling")
