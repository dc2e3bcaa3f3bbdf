"""
Reads runPolicy.schedulingPolicy, and reports which of its fields have no effect.

Owns: the fields, and for which schedulers they have an effect. mpi-operator creates a PodGroup from them; here
Volcano creates its own from annotations, and the coscheduling plugin uses the user's.
"""

from __future__ import annotations

import re

from mpirt.controller.dialects.fields import Fields, shown
from mpirt.controller.manifests.pods import QUEUE_ANNOTATION, is_for_volcano
from mpirt.controller.model.reading import Body, table, text
from mpirt.controller.model.spec import Scheduling, Template
from mpirt.errors import SpecError

_POLICY = "schedulingPolicy"
# Kubernetes' quantities: 2, 0.5, 100m, 2Gi, 1e3.
_QUANTITY = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?")


def read_scheduling(body: Body, run: Fields) -> Scheduling | None:
    """Return the settings of the policy; None if there is none."""
    if not run.has(_POLICY):
        return None
    fields = run.table(_POLICY)
    resources = fields.table("minResources")
    for name in resources.values:
        _check_quantity(resources, name)
    return Scheduling(
        least=fields.number("minAvailable", least=1),
        queue=fields.text("queue"),
        default_queue=text(table(body, "metadata", "annotations"), QUEUE_ANNOTATION),
        priority_class=fields.text("priorityClass"),
    )


def scheduling_notices(run: Fields, workers: Template) -> list[str]:
    """Return a sentence for each field that has no effect, beginning with its path."""
    policy = run.table(_POLICY)
    silent = {
        "scheduleTimeoutSeconds": "no PodGroup is created",
        "minResources": "Volcano adds up what the workers request, and no PodGroup is created",
    }
    if not is_for_volcano(workers):
        alone = "only Volcano uses it (schedulerName: volcano), and no PodGroup is created"
        silent |= {"minAvailable": alone, "queue": alone}
    policy.number("scheduleTimeoutSeconds", least=0)
    return [f"{policy.at(name)}: has no effect: {why}" for name, why in silent.items() if policy.values.get(name)]


def _check_quantity(resources: Fields, name: str) -> None:
    value = resources.values[name]
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not _QUANTITY.fullmatch(str(value)):
        raise SpecError(resources.at(name), f"expected a quantity such as 2, 500m or 4Gi, got {shown(value)}")
