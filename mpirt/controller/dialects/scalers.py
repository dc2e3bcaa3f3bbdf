"""
kai.alibabacloud.com ScaleIn and ScaleOut.

Owns: reading them, and the form of their status. Dashboards and columns show the type of the last condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from mpirt import names, podobjects
from mpirt.controller.dialects.status_fields import condition_row, read_conditions
from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Condition, Type
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.reading import Body, moment, rows, table, text, write_time
from mpirt.controller.model.roster import Source
from mpirt.controller.model.spec import Scaler
from mpirt.errors import SpecError
from mpirt.fields import Fields

RESOURCES = tuple(
    Resource("kai.alibabacloud.com/v1alpha1", kind, plural)
    for kind, plural in ((kinds.SCALE_IN, "scaleins"), (kinds.SCALE_OUT, "scaleouts"))
)

_PODS = {Source.SCALE_IN: "toDeletePods", Source.SCALE_OUT: "addPods"}
_UNUSED = ("script", "env", "backoffLimit")
_SECONDS = 60
_LAST = datetime.max.replace(tzinfo=UTC)


def read_scalers(objects: Mapping[str, Iterable[Body]]) -> tuple[Scaler, ...]:
    """Return the ScaleIns and ScaleOuts among the objects, the oldest first."""
    found = [read_scaler(Source(kind), body) for kind in kinds.SCALERS for body in objects.get(kind, ())]
    return tuple(sorted(found, key=lambda one: (one.created or _LAST, one.source, one.name)))


def read_scaler(source: Source, body: Body) -> Scaler:
    """Read one as the API server has it."""
    metadata = table(body, "metadata")
    scaler = Scaler(
        source=source,
        name=text(metadata, "name"),
        uid=text(metadata, "uid"),
        api_version=text(body, "apiVersion"),
        created=moment(metadata, "creationTimestamp"),
        count=None,
        pods=None,
        seconds=_SECONDS,
        force=podobjects.annotation(metadata, names.FORCE_ANNOTATION) == "true",
        owners=tuple(text(row, "uid") for row in rows(metadata, "ownerReferences")),
        is_controlled=bool(podobjects.controller(metadata)),
        problem="",
        unused=tuple(f"spec.{name}" for name in _UNUSED if table(body, "spec").get(name)),
        conditions=read_conditions(table(body, "status"), kinds.TRAINING_JOB),
        deleting="deletionTimestamp" in metadata,
    )
    try:
        return _asking(scaler, Fields(body, "").needed_table("spec"))
    except SpecError as error:
        return replace(scaler, problem=str(error))


def write_scaler_status(source: Source, conditions: Iterable[Condition], pods: Iterable[str]) -> dict[str, object]:
    """Return the status of one, with the workers that leave or join."""
    ordered = sorted(conditions, key=lambda one: (one.changed, list(Type).index(one.type)))
    start = next((one.changed for one in ordered if one.type is Type.SCALING), None)
    end = next((one.changed for one in ordered if one.type in (Type.SCALE_SUCCEEDED, Type.SCALE_FAILED)), None)
    times = {"startTime": start, "completionTime": end}
    return {
        "phase": str(ordered[-1].type) if ordered else "",
        "conditions": [condition_row(one, kinds.TRAINING_JOB) for one in ordered],
        "replicaStatuses": {},
        "restartCount": 0,
        _PODS[source]: list(pods),
        **{name: write_time(when) for name, when in times.items() if when is not None},
    }


def _asking(scaler: Scaler, spec: Fields) -> Scaler:
    seconds = spec.number("timeout", least=0)
    scaler = replace(scaler, seconds=_SECONDS if seconds is None else seconds)
    if scaler.source is Source.SCALE_OUT:
        wanted = spec.needed_table("toAdd")
        count = wanted.number("count", least=1)
        if count is None:
            raise SpecError(wanted.at("count"), "is missing")
        return replace(scaler, count=count)
    wanted = spec.needed_table("toDelete")
    count, is_named = wanted.number("count", least=1), wanted.has("podNames")
    if is_named == (count is not None):
        raise SpecError(wanted.path, "must have either count or podNames")
    pods = tuple(dict.fromkeys(wanted.texts("podNames")))
    if is_named and not pods:
        raise SpecError(wanted.at("podNames"), "is an empty list; name the workers to remove")
    return replace(scaler, count=count, pods=pods if is_named else None)
