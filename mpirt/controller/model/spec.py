"""
A job's spec, independent of the kind of job object, and the objects that ask for a change of its workers.

Owns: the values. A dialect builds them from its object, once, and reports the path of an invalid field. After
that, no code reads fields of the user's dictionaries, except of pod templates, which Kubernetes gets unchanged.
What becomes of a ScaleIn or ScaleOut is decided in scaling/; its status is the record of its outcome.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from mpirt.controller.model.conditions import Condition, Type
from mpirt.controller.model.kinds import GangScheduler
from mpirt.controller.model.reading import digest
from mpirt.controller.model.roster import Roster, Source
from mpirt.errors import SpecError
from mpirt.hosts import Form

_QUALIFIED = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class Implementation(StrEnum):
    """The MPI implementation; determines the form of the hostfile and the launcher's environment."""

    OPEN_MPI = "OpenMPI"
    INTEL = "Intel"
    MPICH = "MPICH"

    @property
    def form(self) -> Form:
        """The form of a list of hosts that its launcher reads."""
        return Form.HOSTFILE if self is Implementation.OPEN_MPI else Form.HYDRA


class CleanPods(StrEnum):
    """Which pods are deleted when the job has finished."""

    NONE = "None"
    RUNNING = "Running"
    """The pods that still run: all workers, which never end by themselves."""
    ALL = "All"


class Creation(StrEnum):
    """When the launcher is created."""

    AT_STARTUP = "AtStartup"
    """At once; its commands then wait for the workers."""
    WHEN_READY = "WaitForWorkersReady"


@dataclass(frozen=True, slots=True)
class JobKey:
    """
    Identifies a job in the cluster.

    The uid is not part of it: objects left over from a previous job of the same name concern the next one, and
    events do not contain the job's uid. Every write tests the uid, and what is remembered about a job is dropped
    when its uid changes.
    """

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Owner:
    """The job object, as owner references and events refer to it."""

    api_version: str
    kind: str
    key: JobKey
    uid: str


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template of the user: the fields that builders use are checked, the others passed on unchanged."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    """The pod's spec, with at least one container; each has a unique name."""
    main: str
    """The container that runs MPI: mpirt's settings are added to it, and commands are started in it."""
    path: str = ""
    """Where the template is in the job object, for messages."""


@dataclass(frozen=True, slots=True)
class Elastic:
    """The smallest and the largest number of workers with which the job can run."""

    least: int
    most: int


class Restart(StrEnum):
    """Which dead workers are replaced while the launcher runs."""

    NEVER = "Never"
    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    """Those whose pod has failed, not those that were deleted."""
    EXIT_CODE = "ExitCode"
    """Those whose container ended with a code above 128: killed by a signal."""


@dataclass(frozen=True, slots=True)
class BarePods:
    """Workers whose pods are created by this controller itself, not by a StatefulSet."""

    replicas: int
    """How many the spec asks for."""
    pointer: str
    """Where that number is in the job object, as a JSON pointer."""
    restart: Restart
    roster: Roster | None
    """Which workers there are by the job's status; None before its first status."""


# Here and below without slots, which would leave no place for what is computed once.
@dataclass(frozen=True)
class Workers:
    """The pods in which ranks run and for which the launcher waits: a set of names, whatever creates the pods."""

    names: tuple[str, ...]
    """The names of the pods in the order of their ranks; they are their host names, too."""
    template: Template
    elastic: Elastic | None = None
    bare: BarePods | None = None
    """None if a StatefulSet creates the pods."""
    leave_cordoned: bool = False
    """Whether workers leave nodes that are cordoned; until they have, a PodDisruptionBudget keeps them."""

    @cached_property
    def replicas(self) -> int:
        return len(self.names)

    @cached_property
    def needed(self) -> int:
        """How many workers must be Ready for the launcher to start."""
        if self.elastic is None or self.bare is not None:
            return self.replicas
        return min(self.elastic.least, self.replicas)

    @cached_property
    def roster(self) -> Roster | None:
        return None if self.bare is None else self.bare.roster

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The workers that a launcher may use: those that are about to leave are no hosts any more."""
        return self.names if self.roster is None else self.roster.hosts


NO_WORKERS = Workers((), Template({}, {}, {"containers": []}, ""))
"""The workers of a job that runs only in its launcher."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """The pod that runs mpirun, mpiexec or horovodrun."""

    template: Template
    creation: Creation = Creation.WHEN_READY
    works_too: bool = False
    """Whether ranks run in it, too (runLauncherAsWorker)."""


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """How long the job may run, how often it is retried, and what is cleaned up."""

    clean: CleanPods = CleanPods.NONE
    ttl: int | None = None
    """Seconds after which a finished job is deleted."""
    deadline: int | None = None
    """Seconds that the job may be active, waiting for workers included."""
    patience: int | None = None
    """Seconds that the job may wait for its workers."""
    gave_up: bool = False
    """Whether the job object says that it has waited longer than that."""
    retries: int = 6
    exits_are_final: bool = False
    """Whether only launchers that were deleted or lost are retried, not those that have exited with an error."""
    suspended: bool = False
    tolerates_losses: bool = False
    """Whether a launcher that ends with code 0 is believed though it has lost workers."""


@dataclass(frozen=True, slots=True)
class Scheduling:
    """Settings for a gang scheduler, which have an effect if the controller was started with one."""

    least: int | None = None
    """How many pods must start together, including the launcher."""
    queue: str = ""
    default_queue: str = ""
    """From the job's annotations. Not part of the digests, so that changing it replaces no pods."""
    priority_class: str = ""
    timeout: int | None = None
    """Seconds that a member may wait for the others."""
    resources: Mapping[str, str] = field(default_factory=dict)
    """What the members need together, if not what they request."""


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """The whole spec of a job, from which its objects are built."""

    owner: Owner
    implementation: Implementation
    slots: int
    workers: Workers
    launcher: Launcher
    run: RunPolicy
    scheduling: Scheduling | None = None
    notices: tuple[str, ...] = ()
    """Fields that are not honoured as written, each in a sentence that begins with its path."""

    @cached_property
    def key(self) -> JobKey:
        return self.owner.key

    @cached_property
    def has_workers(self) -> bool:
        """Whether the job has workers at all."""
        return self.workers.replicas > 0

    @cached_property
    def needs_every_worker(self) -> bool:
        """Whether an attempt in which a worker is lost has failed, whatever its launcher's exit code."""
        return self.has_workers and self.workers.elastic is None and not self.run.tolerates_losses

    @property
    def asks_for_hosts(self) -> bool:
        """Whether the launcher starts with the workers that are there, and so only after some are."""
        return self.workers.elastic is not None

    @property
    def starts_before_workers(self) -> bool:
        """Whether the launcher runs before its workers do: each of its commands waits for its worker."""
        return self.launcher.creation is Creation.AT_STARTUP and not self.asks_for_hosts

    @cached_property
    def worker_digest(self) -> str:
        """
        The digest of the parts that shape a worker: when it changes, the workers are replaced.

        It does not cover the number of workers.
        """
        return digest(_shape(self.workers.template), *self._scheduling_shape())

    @cached_property
    def launcher_digest(self) -> str:
        """The digest of the parts that shape the launcher: when it changes, the launcher is replaced."""
        return digest(
            _shape(self.launcher.template),
            self.launcher.works_too,
            self.workers.template.main,
            self.implementation,
            self.slots,
            *self._scheduling_shape(),
        )

    def _scheduling_shape(self) -> tuple[str, str]:
        return ("", "") if self.scheduling is None else (self.scheduling.queue, self.scheduling.priority_class)


def _shape(template: Template) -> list[Any]:
    return [dict(template.labels), dict(template.annotations), dict(template.spec), template.main]


class RuntimeVolume(StrEnum):
    """How launcher pods get the files of the runtime image."""

    AUTO = "auto"
    IMAGE = "image"
    """It is mounted."""
    COPY = "copy"
    """An init container copies it."""


NODES_UNKNOWN = "the controller may not list nodes"


@dataclass(frozen=True)
class Settings:
    """The settings of the controller that apply to all jobs."""

    runtime_image: str
    """The image that delivers mpirt-rsh to launcher pods; empty if launcher images contain it themselves."""
    runtime_volume: RuntimeVolume = RuntimeVolume.AUTO
    why_copied: str = NODES_UNKNOWN
    """Why AUTO is COPY, if it is for all jobs; empty: it is IMAGE. Follows the nodes."""
    cluster_domain: str = "cluster.local"
    keepers: Mapping[str, str] = field(default_factory=dict)
    """The keeper's files for the workers, by name, in base64; one copy for all jobs."""
    architectures: frozenset[str] = frozenset()
    """Those of the nodes; empty: they are unknown. Follows the nodes."""
    gpu_label: str = "falldio.com/gpu"
    """The node label whose value is the model of a node's GPUs, for GPUTasks."""
    gpu_resource: str = "falldio.com/gpu"
    """The resource that a GPUTask's GPUs are, in its pod's limits."""
    only_claimed: bool = False
    """Whether jobs that do not name this controller as their manager are left to others."""
    exclusive_cpus: bool = False
    """Whether nodes give containers of Guaranteed pods whole CPUs that no other container may use."""
    gang: str = ""
    """The gang scheduler of all jobs: volcano, or the name of one with the coscheduling plugin; empty: none."""

    def __post_init__(self) -> None:
        if not self.cluster_domain or self.cluster_domain != self.cluster_domain.strip("."):
            raise SpecError("cluster domain", f"not a domain: {self.cluster_domain!r}")
        for option, name in (("GPU label", self.gpu_label), ("GPU resource", self.gpu_resource)):
            if not _QUALIFIED.fullmatch(name):
                raise SpecError(option, f"not a name such as nvidia.com/gpu: {name!r}")

    @cached_property
    def gang_scheduler(self) -> GangScheduler | None:
        return GangScheduler(self.gang) if self.gang else None


@dataclass(frozen=True, slots=True)
class Scaler:
    """One ScaleIn or ScaleOut."""

    source: Source
    name: str
    uid: str
    api_version: str
    created: datetime | None
    count: int | None = None
    """How many workers leave or join."""
    pods: tuple[str, ...] | None = None
    """The workers that leave, by name; None if they are not named."""
    seconds: int = 0
    """How long it may take."""
    force: bool = False
    """Whether workers go at the time limit even if they are still in use."""
    owners: tuple[str, ...] = ()
    """The uids of its owners."""
    is_controlled: bool = False
    """Whether one of its owners is its controller."""
    problem: str = ""
    """Why it is invalid; empty if it is not."""
    unused: tuple[str, ...] = ()
    """The fields that are set and have no effect."""
    conditions: Mapping[Type, Condition] = field(default_factory=dict)
    deleting: bool = False

    @property
    def kind(self) -> str:
        return str(self.source)

    @property
    def has_succeeded(self) -> bool:
        return Type.SCALE_SUCCEEDED in self.conditions

    @property
    def is_over(self) -> bool:
        """Whether its outcome is recorded: it never changes then."""
        return self.has_succeeded or Type.SCALE_FAILED in self.conditions
