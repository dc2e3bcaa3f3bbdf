"""
Reads runPolicy.schedulingPolicy.

Owns: the fields. Which of them have an effect depends on the gang scheduler, if there is one.
"""

from __future__ import annotations

from mpirt.controller.dialects.fields import Fields, shown
from mpirt.controller.model.gangs import QUEUE_ANNOTATION
from mpirt.controller.model.quantities import is_quantity
from mpirt.controller.model.reading import Body, table, text
from mpirt.controller.model.spec import Scheduling
from mpirt.errors import SpecError

_POLICY = "schedulingPolicy"


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
        timeout=fields.number("scheduleTimeoutSeconds", least=0),
        resources={name: str(value) for name, value in resources.values.items()},
    )


def _check_quantity(resources: Fields, name: str) -> None:
    value = resources.values[name]
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not is_quantity(str(value)):
        raise SpecError(resources.at(name), f"expected a quantity such as 2, 500m or 4Gi, got {shown(value)}")
