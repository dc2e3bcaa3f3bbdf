"""
The spec of a GPUTask.

Owns: the values, and the names that a task and its pod have in common. reading.py builds them from the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mpirt import names
from mpirt.controller.model.reading import digest
from mpirt.controller.model.spec import Owner, Settings

GPU_TASK = "GPUTask"
API_VERSION = "falldio.com/v1"

CONTAINER = "gpu-task"
"""The container in which the task runs."""
APP_LABEL = "gpu-task"
"""The value of the label `app` on the pods of all tasks."""
DEFAULT_IMAGE = "nvidia/cuda:11.0-base"

# "true": the task may be ended and run again, because it continues from where it was.
CHECKPOINTABLE_ANNOTATION = f"{names.PREFIX}/checkpointable"

# An event about the task is named after it, and its name is in a label of its pod.
LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What a task asks for. A field that is not set is empty, and then nothing in the pod comes from it."""

    owner: Owner
    memory: str
    cpu: str
    gpu: str
    """The model: the value of a node label."""
    gpu_amount: str
    priority: str
    """The name of a PriorityClass."""
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    labels: Mapping[str, str]
    """Those in the template; so are the next two."""
    annotations: Mapping[str, str]
    pod: Mapping[str, Any]
    checkpointable: bool

    @property
    def name(self) -> str:
        """The name of the task, and of its pod."""
        return self.owner.key.name

    def shape(self, settings: Settings) -> str:
        """Return a digest of what was written for the pod: when it changes, the task needs another pod."""
        return digest(
            [self.memory, self.cpu, self.gpu, self.gpu_amount, self.priority],
            [self.image, list(self.command), list(self.args)],
            [dict(self.labels), dict(self.annotations), dict(self.pod)],
            [settings.gpu_label, settings.gpu_resource],
        )
