"""
Reads runPolicy.schedulingPolicy.

Owns: the fields. Which of them have an effect depends on the gang scheduler, if there is one.
"""

from __future__ import annotations

from mpirt.controller.dialects.fields import Fields
from mpirt.controller.model.kinds import QUEUE_ANNOTATION
from mpirt.controller.model.reading import Body, table, text
from mpirt.controller.model.spec import Scheduling

_POLICY = "schedulingPolicy"


def read_scheduling(body: Body, run: Fields) -> Scheduling | None:
    """Return the settings of the policy; None if there is none."""
    if not run.has(_POLICY):
        return None
    fields = run.table(_POLICY)
    return Scheduling(
        least=fields.number("minAvailable", least=1),
        queue=fields.text("queue"),
        default_queue=text(table(body, "metadata", "annotations"), QUEUE_ANNOTATION),
        priority_class=fields.text("priorityClass"),
        timeout=fields.number("scheduleTimeoutSeconds", least=0),
        resources=fields.quantities("minResources"),
    )
