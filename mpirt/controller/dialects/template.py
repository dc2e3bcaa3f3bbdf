"""
Reads the fields of a pod template that the controller uses or adds to, and the scheduling policy.

Owns: which fields these are, and which names and paths in a pod are reserved for mpirt. Kubernetes validates
everything else, in a dry run before anything is created.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpirt import names
from mpirt.controller.manifests import runtime
from mpirt.controller.manifests.config_map import VOLUMES
from mpirt.controller.manifests.launcher import WAIT_CONTAINER
from mpirt.controller.model.kinds import QUEUE_ANNOTATION
from mpirt.controller.model.quantities import is_quantity
from mpirt.controller.model.reading import Body, table, text
from mpirt.controller.model.spec import Scheduling, Template
from mpirt.errors import SpecError
from mpirt.fields import Fields, shown

_OUR_CONTAINERS = frozenset({runtime.CONTAINER, WAIT_CONTAINER})
_OUR_VOLUMES = frozenset({*VOLUMES, runtime.VOLUME})
_OUR_FOLDERS = (names.MPI_FOLDER, names.RUNTIME_PATH)

# Fields that builders read.
_TEXTS = (
    *("dnsPolicy", "priorityClassName", "runtimeClassName", "schedulerName", "serviceAccount"),
    "serviceAccountName",
)
_FLAGS = ("automountServiceAccountToken", "hostNetwork", "hostUsers")

_POLICY = "schedulingPolicy"


def read_template(replica: Fields, main: str) -> Template:
    """
    Return a replica's pod template. Raises SpecError.

    `main` is the container that the job names as the one that runs MPI. If it names none, or the template has no
    container of that name, the container that kubectl would choose is taken: the annotated one, else the first.
    """
    fields = replica.needed_table("template")
    metadata, spec = fields.table("metadata"), fields.needed_table("spec")
    annotations = metadata.labels("annotations")
    containers = _names_of_containers(spec)
    _check_pod(spec)
    candidates = (main, annotations.get(names.DEFAULT_CONTAINER_ANNOTATION, ""), containers[0])
    chosen = next(name for name in candidates if name in containers)
    _check_mounts(next(row for row in spec.rows("containers") if row.text("name") == chosen))
    return Template(metadata.labels("labels"), annotations, spec.values, chosen, fields.path)


def _names_of_containers(spec: Fields) -> list[str]:
    rows = spec.rows("containers")
    if not rows:
        raise SpecError(spec.at("containers"), "at least one container is required")
    everything = [*spec.rows("initContainers"), *rows]
    _check_unique(everything, _OUR_CONTAINERS)
    for row in everything:
        resources = row.table("resources")
        _quantities(resources, "requests")
        _quantities(resources, "limits")
    for row in rows:
        _check_container(row)
    return [row.text("name") for row in rows]


def _check_container(row: Fields) -> None:
    if not row.text("image"):
        raise SpecError(row.at("image"), "is missing")
    row.texts("command")
    row.texts("args")
    row.text("terminationMessagePolicy")
    row.table("securityContext")
    for variable in row.rows("env"):
        if not variable.text("name"):
            raise SpecError(variable.at("name"), "is missing")


def _check_mounts(row: Fields) -> None:
    for mount in row.rows("volumeMounts"):
        path = mount.text("mountPath")
        if path.rstrip("/") in _OUR_FOLDERS:
            raise SpecError(mount.at("mountPath"), f"{path} is where mpirt puts its own files; mount it elsewhere")


def _quantities(fields: Fields, name: str) -> dict[str, str]:
    """Return a mapping of resources to quantities; empty if it is missing."""
    table = fields.table(name)
    found = {key: value for key, value in table.values.items() if value is not None}
    for key, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str) or not is_quantity(str(value)):
            raise SpecError(table.at(key), f"expected a quantity such as 2, 500m or 4Gi, got {shown(value)}")
    return {key: str(value) for key, value in found.items()}


def _check_pod(spec: Fields) -> None:
    _check_unique(spec.rows("volumes"), _OUR_VOLUMES)
    _quantities(spec, "overhead")
    for name in _TEXTS:
        spec.text(name)
    for name in _FLAGS:
        spec.flag(name)
    spec.table("dnsConfig").texts("searches")
    for row in spec.rows("tolerations"):
        row.text("key")
        row.text("effect")


def _check_unique(rows: Iterable[Fields], ours: frozenset[str]) -> None:
    taken: set[str] = set()
    for row in rows:
        name = row.text("name")
        if not name:
            raise SpecError(row.at("name"), "is missing")
        if name in ours:
            raise SpecError(row.at("name"), f"{shown(name)} is reserved for mpirt; choose another name")
        if name in taken:
            raise SpecError(row.at("name"), f"{shown(name)} is used twice in this pod; choose another name")
        taken.add(name)


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
        resources=_quantities(fields, "minResources"),
    )
