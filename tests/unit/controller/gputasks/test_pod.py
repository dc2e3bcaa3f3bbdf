"""The pod of a task: the five fields in their places, and the template around them."""

from __future__ import annotations

from typing import Any

from mpirt.controller.gputasks.spec import parse, task_pod
from mpirt.controller.model.spec import Settings
from tests.unit.controller.gputasks.taskworld import FIELDS, UID, gpu_task
from tests.unit.controller.jobs import SETTINGS, Body

NVIDIA = Settings(runtime_image="", gpu_label="nvidia.com/gpu.product", gpu_resource="nvidia.com/gpu")
NOTHING: Body = dict.fromkeys(FIELDS)


def pod(settings: Settings = SETTINGS, **spec: Any) -> Body:
    return task_pod(parse(gpu_task(**spec)), settings)


def test_the_seeds_task_has_the_seeds_pod() -> None:
    found = pod()
    digest = found["metadata"]["annotations"].pop("mpirt.dev/template")

    assert len(digest) == 16
    assert found == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train",
            "namespace": "ml",
            "labels": {
                "app": "gpu-task",
                "training.kubeflow.org/operator-name": "mpi-operator",
                "training.kubeflow.org/job-name": "train",
                "mpirt.dev/job-kind": "GPUTask",
            },
            "annotations": {},
            "ownerReferences": [
                {
                    "apiVersion": "falldio.com/v1",
                    "kind": "GPUTask",
                    "name": "train",
                    "uid": UID,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"falldio.com/gpu": "rtx4090"},
            "priorityClassName": "gpu-low-priority",
            "containers": [
                {
                    "name": "gpu-task",
                    "image": "nvidia/cuda:11.0-base",
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "resources": {"limits": {"cpu": "8", "memory": "16Gi", "falldio.com/gpu": "1"}},
                }
            ],
        },
    }


def test_a_field_that_is_not_set_leaves_nothing_in_the_pod() -> None:
    assert pod(**NOTHING)["spec"] == {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "gpu-task",
                "image": "nvidia/cuda:11.0-base",
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }
        ],
    }


def test_label_and_resource_are_the_operators_choice() -> None:
    found = pod(NVIDIA)["spec"]

    assert found["nodeSelector"] == {"nvidia.com/gpu.product": "rtx4090"}
    assert found["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_the_task_may_say_what_runs() -> None:
    [container] = pod(image="train:1", command=["python"], args=["train.py"])["spec"]["containers"]

    assert (container["image"], container["command"], container["args"]) == ("train:1", ["python"], ["train.py"])


def test_the_template_is_kept_and_the_tasks_own_fields_come_before_it() -> None:
    own = {
        "name": "gpu-task",
        "image": "template:1",
        "command": ["sh"],
        "terminationMessagePolicy": "File",
        "resources": {"limits": {"cpu": "1", "ephemeral-storage": "1Gi"}, "requests": {"cpu": "500m"}},
    }
    found = pod(
        image="train:1",
        template={
            "metadata": {"labels": {"app": "mine", "team": "a"}, "annotations": {"note": "b"}},
            "spec": {
                "restartPolicy": "OnFailure",
                "nodeSelector": {"zone": "z", "falldio.com/gpu": "other"},
                "priorityClassName": "other",
                "containers": [own, {"name": "logs", "image": "logs:1"}],
                "schedulerName": "mine",
            },
        },
    )

    assert found["metadata"]["labels"].items() >= {"app": "gpu-task", "team": "a"}.items()
    assert found["metadata"]["annotations"]["note"] == "b"
    assert found["spec"] == {
        "restartPolicy": "OnFailure",
        "nodeSelector": {"zone": "z", "falldio.com/gpu": "rtx4090"},
        "priorityClassName": "gpu-low-priority",
        "schedulerName": "mine",
        "containers": [
            {
                "name": "gpu-task",
                "image": "train:1",
                "command": ["sh"],
                "terminationMessagePolicy": "File",
                "resources": {
                    "limits": {
                        "cpu": "8",
                        "memory": "16Gi",
                        "falldio.com/gpu": "1",
                        "ephemeral-storage": "1Gi",
                    },
                    "requests": {"cpu": "500m"},
                },
            },
            {"name": "logs", "image": "logs:1"},
        ],
    }


def test_the_digest_follows_what_was_written() -> None:
    def shape(task: Body, settings: Settings = SETTINGS) -> str:
        return parse(task).shape(settings)

    shapes = [
        shape(gpu_task(**{"gpu-amount": 1})),
        shape(gpu_task(cpu="7")),
        shape(gpu_task(image="a")),
        shape(gpu_task(args=["b"])),
        shape(gpu_task(template={"spec": {"a": 1}})),
        shape(gpu_task(), NVIDIA),
    ]
    assert shapes[0] == shape(gpu_task())
    assert len({*shapes}) == 6
