"""
The schemas of CRDs, and what tests ask about them.

Owns: walking through a schema, and comparing it with what is read and what is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mpirt.controller.model.attempts import Attempt, Failure, History, How, PodEnd, Stop
from tests.unit import yamlfiles
from tests.unit.controller.jobs import NOON, Body
from tests.unit.layers import PROJECT

_END = PodEnd("train-worker-1", How.EXITED, "node-1", "mpi", 137, "OOMKilled", "words", NOON)
_ATTEMPT = Attempt(
    "train-launcher-1", "node-1", NOON, _END, Stop.JOB_DELETED, (_END,), 1, NOON, "2-0123abcd", NOON
)
HISTORY = History(
    (_ATTEMPT,),
    forgotten=3,
    rerun="1",
    failure=Failure("uid-of-Job", 3, NOON, final=True, lost=True),
)
"""Every field of it is written."""


FILES = sorted(path for path in (PROJECT / "crds").glob("*.yaml") if path.name != "kustomization.yaml")
CRDS = [yamlfiles.read(path) for path in FILES]


def crd(name: str) -> Body:
    """One of ours."""
    found: Body = yamlfiles.read(PROJECT / "crds" / f"{name}.yaml")
    return found


def own_fields(schema: Body) -> Body:
    """The fields of an object that are described by hand: those of Kubernetes' types are generated."""
    fields: Body = schema.get("properties", {})
    return {} if "containers" in fields or "valueFrom" in fields else fields


def nodes(schema: Body, path: str = "") -> Iterator[tuple[str, Body]]:
    """The schemas of all fields, rows and values."""
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from nodes(below, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}[]")


def leaves(schema: Body, path: str) -> Iterator[tuple[str, Body]]:
    """Fields that hold no fields with names of their own."""
    if not own_fields(schema):
        yield path, schema
    for name, below in own_fields(schema).items():
        yield from leaves(below, f"{path}.{name}" if path else name)


def described(schema: Body, path: str) -> Iterator[tuple[str, str]]:
    """All fields with their descriptions; those of the rows of a list, too."""
    yield path, schema.get("description", "")
    for name, below in own_fields(schema).items():
        yield from described(below, f"{path}.{name}")
    rows = schema.get("items", {})
    for name, below in own_fields(rows).items():
        yield from described(below, f"{path}[].{name}")


class Watched(Mapping[str, Any]):
    """A mapping that notes which of its fields are asked for."""

    def __init__(self, values: Mapping[str, Any], path: str, asked: set[str]) -> None:
        self.values_ = values
        self.path = path
        self.asked = asked

    def __getitem__(self, name: str) -> Any:
        place = f"{self.path}.{name}" if self.path else name
        self.asked.add(place)
        value = self.values_[name]
        return Watched(value, place, self.asked) if isinstance(value, Mapping) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def without_place(asked: Iterable[str], fields: Iterable[str]) -> set[str]:
    """What is read of a spec, not counting the pods' own, and is neither a field of the schema nor above one."""
    known = set(fields)
    for field in list(known):
        while field := field.rpartition(".")[0]:
            known.add(field)
    inner = {path for path in asked if path.startswith("spec.") and ".template.spec." not in path}
    return inner - known


def both_ways(written: object, schema: Body, path: str = "") -> tuple[set[str], set[str]]:
    """What is written and not in the schema, and what is in the schema and not written."""
    extra, missing = set[str](), set[str]()
    for name, value, below in _pairs(written, schema):
        place = f"{path}.{name}" if path and name else path or name
        if below is None:
            extra.add(place)
        elif value is None:
            missing.add(place)
        else:
            more, less = both_ways(value, below, place)
            extra |= more
            missing |= less
    return extra, missing


def _pairs(written: object, schema: Body) -> Iterator[tuple[str, object, Body | None]]:
    """Each field with its value and its schema, of which one may be missing; the rows of a list have no name."""
    if isinstance(written, Mapping):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name in {**written, **properties}:
            yield name, written.get(name), properties.get(name, others)
    elif isinstance(written, list):
        yield from (("", row, schema["items"]) for row in written)


def at(body: Any, path: str) -> object:
    """What stands at a path such as .spec.replicas."""
    for name in path.removeprefix(".").split("."):
        body = body[name]
    return body
