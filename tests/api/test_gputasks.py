"""
GPUTasks: the first controller's example, priorities, deletion, and a status through a task's life.

On a plane of its own, because other tests' pods would take its nodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.ground import Ground, Namespace
from testbed.kube.paths import PROJECT
from testbed.kube.wait import until
from testbed.manifests import pod as plain_pod
from testbed.plane import nodes
from testbed.plane.plane import Plane
from tests.api import controllers
from tests.api.controllers import Controller, job_name
from tests.api.gputasks import (
    EXAMPLE,
    GPU,
    MODEL,
    TASKS,
    WITHIN,
    Task,
    add_gpus,
    gpu_plane,
    ground_of,
    manifest,
    submit,
)
from tests.promises import promise

# Mere words in a status may be kept back for ten seconds.
QUIET_SECONDS = 12.0
WRITES_OF_A_LIFE = 7
# Kubernetes finds a node unreachable after 50 s; nothing is forced within 90 s of the controller's start.
LOST_WITHIN = 240.0


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    with gpu_plane(tmp_path_factory.mktemp("gpus")) as made:
        yield made


@pytest.fixture(scope="module")
def ground(own: Plane) -> Ground:
    return ground_of(own)


@pytest.fixture(scope="module")
def installed(own: Plane, ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with controllers.passing(own, ground, tmp_path_factory.mktemp("controller"), sees_nodes=True) as made:
        yield made


@pytest.fixture
def tasks(installed: Controller) -> Namespace:
    """The namespace that the controller looks at."""
    return installed.namespace


@promise("A GPUTask runs in one pod on a node of its GPU model, with the limits that it asks for.", of="GPUTask")
def test_the_example_runs_on_a_node_of_its_model_and_succeeds(tasks: Namespace) -> None:
    tasks.kubectl("apply", f"--filename={EXAMPLE}")
    task = Task(tasks, "gpu-task")

    task.wait_for("GPUTaskRunning")
    pod, status = task.pod(), task.status()
    task.ends(0)
    task.wait_for("GPUTaskSucceeded", kind="Succeeded")

    assert pod["metadata"]["labels"]["app"] == "gpu-task"
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "8", "memory": "16Gi", GPU: "1"}
    assert (pod["spec"]["nodeSelector"], pod["spec"]["priority"]) == ({GPU: MODEL}, 1)
    assert status["phase"] == "Running"
    assert status["nodeName"] == pod["spec"]["nodeName"]
    assert status["nodeName"] in ("gpu-1", "gpu-2")
    assert {"startTime", "completionTime"} <= task.status().keys()
    assert task.events() == ["GPUTaskPodCreated", "GPUTaskRunning", "GPUTaskSucceeded"]


@promise("A GPUTask of a higher priority displaces one of a lower, which runs again later.", of="GPUTask")
@promise(
    "A GPUTask whose pod is taken from it runs again: displaced, evicted, deleted, or node lost.", of="GPUTask"
)
def test_a_task_of_a_higher_priority_displaces_one_of_a_lower_which_runs_again(
    own: Plane, tasks: Namespace
) -> None:
    add_gpus(own.kubectl, "scarce", "gpu-scarce")
    low = submit(tasks, "low", gpu="scarce")
    low.wait_for("GPUTaskRunning")
    middle = submit(tasks, "middle", gpu="scarce", priority="gpu-medium-priority")
    middle.wait_for("GPUTaskRunning")
    low.wait_for("GPUTaskUnschedulable")

    high = submit(tasks, "high", gpu="scarce", priority="gpu-high-priority")
    high.wait_for("GPUTaskRunning")
    middle.wait_for("GPUTaskUnschedulable")
    for one in (high, middle, low):
        one.wait_for("GPUTaskRunning")
        one.ends(0)
        one.wait_for("GPUTaskSucceeded", kind="Succeeded")

    assert [one.status()["restarts"] for one in (low, middle, high)] == [1, 1, 0]
    assert low.events() == [
        "GPUTaskPodCreated",
        "GPUTaskRunning",
        "GPUTaskPreempted",
        "GPUTaskUnschedulable",
        "GPUTaskRunning",
        "GPUTaskSucceeded",
    ]


@promise("A GPUTask that finds no node waits and says why.", of="GPUTask")
def test_a_task_of_the_same_priority_waits_and_says_why(own: Plane, tasks: Namespace) -> None:
    add_gpus(own.kubectl, "single", "gpu-single")
    first = submit(tasks, "first", gpu="single")
    first.wait_for("GPUTaskRunning")
    second = submit(tasks, "second", gpu="single")

    said = second.wait_for("GPUTaskUnschedulable")["message"]

    assert f"Insufficient {GPU}" in said
    assert second.status()["phase"] == "Pending"
    assert first.condition()["reason"] == "GPUTaskRunning"


@promise("The pod of a GPUTask is deleted with it.", of="GPUTask")
def test_a_task_that_is_deleted_takes_its_pod_with_it(tasks: Namespace) -> None:
    task = submit(tasks, "gone")
    task.wait_for("GPUTaskRunning")

    tasks.kubectl("delete", TASKS, task.name)

    until(lambda: not task.pod(), within=WITHIN, what="its pod to go")


@promise(
    "A foreign pod with the name of a GPUTask is left alone, and the task runs when it is gone.", of="GPUTask"
)
def test_a_pod_of_somebody_else_is_left_alone_and_the_task_continues_when_it_is_gone(tasks: Namespace) -> None:
    task = Task(tasks, job_name("taken"))
    tasks.kubectl.apply(plain_pod(task.name, image="busybox"))
    theirs = task.pod()
    tasks.kubectl.apply(manifest(task.name))

    said = task.wait_for("ErrResourceExists")["message"]
    tasks.kubectl("delete", TASKS, task.name)
    tasks.kubectl.apply(manifest(task.name))
    task.wait_for("ErrResourceExists")
    left = task.pod()
    tasks.kubectl("delete", "pod", task.name)
    task.wait_for("GPUTaskRunning")

    assert said == f"pod {task.name} exists and has no owner; the task waits until the name is free"
    assert (left["metadata"]["uid"], "ownerReferences" in left["metadata"]) == (theirs["metadata"]["uid"], False)
    assert task.pod()["metadata"]["ownerReferences"][0]["uid"] == task.body()["metadata"]["uid"]


@promise("A GPUTask that ends by itself is final: it never runs again for its exit code.", of="GPUTask")
def test_a_task_that_runs_out_of_memory_has_failed_and_does_not_run_again(tasks: Namespace) -> None:
    task = submit(tasks, "memory")
    task.wait_for("GPUTaskRunning")
    task.ends(137, "OOMKilled")
    task.wait_for("GPUTaskOOMKilled", kind="Failed")
    before = task.status()

    tasks.kubectl("delete", "pod", task.name)
    other = submit(tasks, "other")
    other.wait_for("GPUTaskRunning")

    assert task.pod() == {}
    assert task.status() == before
    assert (before["phase"], before["conditions"][-1]["message"]) == (
        "Failed",
        f"pod {task.name}: container gpu-task ended with code 137 (OOMKilled)",
    )


@promise(
    "A GPUTask whose pod is taken from it runs again: displaced, evicted, deleted, or node lost.", of="GPUTask"
)
def test_a_task_whose_pod_somebody_deletes_runs_again(tasks: Namespace) -> None:
    task = submit(tasks, "deleted")
    task.wait_for("GPUTaskRunning")
    before = task.uid()

    tasks.kubectl("delete", "pod", task.name)
    status = task.wait_until(lambda one: one.get("restarts") == 1 and one["phase"] == "Running", "another pod")

    assert status["podUID"] == task.uid() != before
    assert task.events() == ["GPUTaskPodCreated", "GPUTaskRunning", "GPUTaskPodDeleted", "GPUTaskRunning"]


@promise("A change of a GPUTask takes effect while it waits; one that runs is reported as outdated.", of="GPUTask")
def test_a_task_that_waits_may_be_changed_and_one_that_runs_is_left_alone(tasks: Namespace) -> None:
    task = submit(tasks, "changed", gpu="none-has-it")
    task.wait_for("GPUTaskUnschedulable")
    first = task.uid()

    task.change(gpu=MODEL)
    task.wait_for("GPUTaskRunning")
    second = task.uid()
    task.change(cpu=4)
    task.wait_for("GPUTaskOutdated", kind="Outdated")

    assert first != second == task.uid()
    assert task.condition()["reason"] == "GPUTaskRunning"
    assert task.status()["restarts"] == 0
    assert task.status()["observedGeneration"] == task.body()["metadata"]["generation"]


@promise("A PriorityClass that does not exist is reported in the GPUTask's status.", of="GPUTask")
def test_a_priority_that_does_not_exist_is_told(tasks: Namespace) -> None:
    task = submit(tasks, "priority", priority="nobody-has-it")

    assert "no PriorityClass with name nobody-has-it was found" in task.wait_for("GPUTaskRefused")["message"]


@promise("An invalid field of a GPUTask is refused by the API server, in words that name it.", of="GPUTask")
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("memory", "16gi", '"16gi": must be a quantity such as 16Gi; units are k, M, G, T, Ki, Mi, Gi and Ti'),
        ("memory", -1, "-1: must be a quantity such as 16Gi"),
        ("cpu", "eight", '"eight": must be a quantity such as 8, "0.5" or 500m'),
        ("cpu", 0.5, "must be of type integer,string"),
        ("gpu", "rtx 4090", '"rtx 4090": must be a GPU model as the nodes\' label has it, such as rtx4090'),
        ("gpu-amount", "0.5", '"0.5": must be a whole number of GPUs, such as 1'),
        ("priority", "Low", '"Low": must be the name of a PriorityClass, such as gpu-low-priority'),
    ],
)
def test_a_field_that_can_not_be_is_refused_in_words(
    tasks: Namespace, field: str, value: object, said: str
) -> None:
    wrong: dict[str, Any] = {field: value}

    answer = refused(tasks, manifest("refused", **wrong))

    assert f"spec.{field}: Invalid value: " in answer
    assert said in answer


@promise("An invalid field of a GPUTask is refused by the API server, in words that name it.", of="GPUTask")
def test_a_name_that_is_too_long_is_refused_in_words(tasks: Namespace) -> None:
    assert "the name must have at most 63 characters" in refused(tasks, manifest("x" * 64))


def test_a_field_that_pods_do_not_have_is_refused_and_without_validation_dropped(tasks: Namespace) -> None:
    container = {"name": "gpu-task", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
    name = job_name("unknown")
    body = manifest(name, template={"spec": {"tomorrow": {"a": 1}, "containers": [container]}})

    said = refused(tasks, body)
    tasks.kubectl("create", "--validate=false", "--filename=-", stdin=json.dumps(body))

    assert re.search(r'unknown field "(spec\.template\.spec\.)?tomorrow"', said)
    assert Task(tasks, name).body()["spec"]["template"] == {"spec": {"containers": [container]}}


@promise("The fields of a GPUTask may be text or whole numbers.", of="GPUTask")
def test_numbers_are_taken(tasks: Namespace) -> None:
    numbers: dict[str, Any] = {"cpu": 2, "memory": 1000000000, "gpu-amount": 1}
    task = submit(tasks, "numbers", **numbers)

    task.wait_for("GPUTaskRunning")

    assert task.pod()["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2", "memory": "1G", GPU: "1"}


@promise("kubectl get gputask -o wide shows what a task asks for, and why it waits.", of="GPUTask")
def test_kubectl_shows_what_it_asks_for_and_why_it_waits(tasks: Namespace) -> None:
    amount: dict[str, Any] = {"gpu-amount": 2}
    task = submit(tasks, "shown", gpu="nobody-has-it", **amount)
    task.wait_for("GPUTaskUnschedulable")

    words = tasks.kubectl("get", "gputask", task.name, "--output=wide", "--no-headers").stdout.split(maxsplit=7)

    # It has no node yet, and the column is blank.
    name, phase, model, count, priority, _, restarts, message = words
    assert (name, phase, model, count) == (task.name, "Pending", "nobody-has-it", "2")
    assert (priority, restarts) == ("gpu-low-priority", "0")
    assert message.startswith(f"pod {task.name} is not scheduled: Unschedulable: 0/")


@promise("Only a checkpointable GPUTask leaves a node that is about to go.", of="GPUTask")
def test_a_task_that_has_agreed_leaves_a_node_that_is_about_to_go_and_others_stay(
    own: Plane, tasks: Namespace
) -> None:
    add_gpus(own.kubectl, "spot", "spot-1", each=2)
    moving, staying = submit(tasks, "moving", gpu="spot"), submit(tasks, "staying", gpu="spot")
    before = {one.name: one.wait_for_run() for one in (moving, staying)}
    tasks.kubectl("annotate", TASKS, moving.name, "mpirt.dev/checkpointable=true")
    add_gpus(own.kubectl, "spot", "spot-2", each=2)

    own.kubectl("taint", "node", "spot-1", "mpirt.dev/node-going=soon:NoSchedule")
    moving.wait_for_run(after=before[moving.name])

    assert moving.status()["nodeName"] == "spot-2"
    assert moving.events() == ["GPUTaskPodCreated", "GPUTaskRunning", "GPUTaskMoved", "GPUTaskRunning"]
    assert (staying.uid(), staying.status()["nodeName"]) == (before[staying.name], "spot-1")


@promise(
    "A GPUTask whose pod is taken from it runs again: displaced, evicted, deleted, or node lost.", of="GPUTask"
)
@pytest.mark.one_in(3)
def test_a_task_whose_node_is_lost_runs_again_on_another(own: Plane, tasks: Namespace) -> None:
    add_gpus(own.kubectl, "fragile", "fragile-1")
    soon = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]
    task = submit(
        tasks,
        "fragile",
        gpu="fragile",
        template={"spec": {"tolerations": soon, "terminationGracePeriodSeconds": 1}},
    )
    before = task.wait_for_run()
    add_gpus(own.kubectl, "fragile", "fragile-2")

    nodes.lose(own.kubectl, "fragile-1")
    task.wait_for_run(after=before, within=LOST_WITHIN)

    assert task.status()["nodeName"] == "fragile-2"
    assert task.events()[-2:] == ["GPUTaskNodeLost", "GPUTaskRunning"]


@promise("A job that runs in peace costs the API server no request but watches.", of="mpirt-controller")
@pytest.mark.one_in(3)
def test_a_task_costs_seven_writes_and_in_peace_none(
    own: Plane, ground: Ground, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with controllers.passing(own, ground, tmp_path_factory.mktemp("alone")) as alone:
        task = submit(alone.namespace, "cost")
        task.wait_for("GPUTaskRunning")
        alone.wait_for_rest(QUIET_SECONDS)
        task.ends(0)
        task.wait_for("GPUTaskSucceeded", kind="Succeeded")
        alone.wait_for_rest(QUIET_SECONDS)

        assert alone.replicas[0].metrics().writes() == WRITES_OF_A_LIFE


@promise(
    "A kind whose CRD is missing is done without, and runs without a restart once it is there.",
    of="mpirt-controller",
)
def test_a_controller_without_the_crd_is_ready_and_runs_tasks_once_there_is_one(
    own: Plane, ground: Ground, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The last test: all tasks go with the CRD."""
    own.kubectl("delete", "crd", TASKS, "--timeout=60s")
    with controllers.passing(own, ground, tmp_path_factory.mktemp("without")) as without:
        [replica] = without.replicas
        said = [line for line in replica.log() if line.get("kind") == "GPUTask"]
        problems = replica.problems()
        own.kubectl("apply", "--kustomize", str(PROJECT / "crds"))
        own.kubectl("wait", "crd", TASKS, "--for=condition=Established", "--timeout=60s")
        task = submit(without.namespace, "later")
        task.wait_for("GPUTaskRunning")

    assert problems == ""
    assert [(line["level"], line["message"]) for line in said] == [("info", "doing without a kind")]


def refused(tasks: Namespace, body: dict[str, object]) -> str:
    """What the API server answers to a task that it does not take."""
    answer = tasks.kubectl("create", "--filename=-", stdin=json.dumps(body), check=False)
    assert answer.returncode != 0
    return answer.stderr
