"""
A job as the controller understands it, whatever object described it.

Owns: the values. A dialect makes them out of its object, once, and reports the path of a field that can't be;
behind that nobody asks a dictionary of the user's for a field, but for pod templates, which go to Kubernetes as
they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mpirt.errors import SpecError
from mpirt.hosts import Form


class Implementation(StrEnum):
    """Whose MPI it is: decides the hostfile's form and the launcher's environment."""

    OPEN_MPI = "OpenMPI"
    INTEL = "Intel"
    MPICH = "MPICH"

    @property
    def form(self) -> Form:
        """How its launcher wants lists of hosts."""
        return Form.HOSTFILE if self is Implementation.OPEN_MPI else Form.HYDRA


class CleanPods(StrEnum):
    """Which pods go when the job has finished."""

    NONE = "None"
    RUNNING = "Running"
    """Those that still run: the workers, always."""
    ALL = "All"


class Creation(StrEnum):
    """When the launcher is made."""

    AT_STARTUP = "AtStartup"
    """At once; its pod then waits for the workers."""
    WHEN_READY = "WaitForWorkersReady"


@dataclass(frozen=True, slots=True)
class JobKey:
    """
    What a job is called in the cluster.

    Not its uid: what a previous job of the name has left concerns the next one, and events name no uid of a job.
    Every write tests the uid, and what is remembered of a job ends with it.
    """

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Owner:
    """The job object, as owner references and events name it."""

    api_version: str
    kind: str
    key: JobKey
    uid: str


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template of the user's: checked as far as it is built upon, otherwise passed on as it is."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    """At least one container, each with a name of its own."""
    main: str
    """The container that runs the MPI: what is set for it is set here, and commands are started in it."""


@dataclass(frozen=True, slots=True)
class Elastic:
    """How few and how many workers the job can work with."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Workers:
    """The pods that are waited for and in which ranks run: a set of names, whatever makes the pods."""

    names: tuple[str, ...]
    """In the order of their ranks. They are the host names, too."""
    template: Template
    elastic: Elastic | None = None

    @property
    def replicas(self) -> int:
        return len(self.names)

    @property
    def needed(self) -> int:
        """How many must be Ready for the launcher to start."""
        return self.replicas if self.elastic is None else min(self.elastic.least, self.replicas)


NO_WORKERS = Workers((), Template({}, {}, {"containers": []}, ""))
"""Of a job that runs in its launcher alone."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """The pod that runs mpirun, mpiexec or horovodrun."""

    template: Template
    creation: Creation = Creation.WHEN_READY
    works_too: bool = False
    """Whether ranks run in it, too (runLauncherAsWorker)."""


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """How long the job may run, how often it is tried, and what is left of it."""

    clean: CleanPods = CleanPods.NONE
    ttl: int | None = None
    """Seconds after which a finished job is deleted."""
    deadline: int | None = None
    """Seconds that the launcher may be active."""
    retries: int = 6
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class Scheduling:
    """What a gang scheduler is told. It makes its groups itself: no object of it is made here."""

    least: int | None = None
    """How many pods are to start together, the launcher counted."""
    queue: str = ""
    default_queue: str = ""
    """Of the job's annotations; no part of what shapes the pods, so that a change of it replaces none."""
    priority_class: str = ""
    resources: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """All that objects are built from."""

    owner: Owner
    implementation: Implementation
    slots: int
    workers: Workers
    launcher: Launcher
    run: RunPolicy
    scheduling: Scheduling | None = None
    notices: tuple[str, ...] = ()
    """Fields that can't mean here what they say, each in a sentence that begins with its path."""

    @property
    def key(self) -> JobKey:
        return self.owner.key

    @property
    def has_workers(self) -> bool:
        """Whether it asks for workers at all."""
        return self.workers.replicas > 0


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator of the controller decides, the same for all jobs."""

    runtime_image: str
    """The image whose init container delivers mpirt-rsh; empty if launcher images bring it themselves."""
    cluster_domain: str = "cluster.local"
    keepers: Mapping[str, str] = field(default_factory=dict)
    """The keeper's files for the workers, by their names, in base64; one copy for all jobs."""

    def __post_init__(self) -> None:
        if not self.cluster_domain or self.cluster_domain != self.cluster_domain.strip("."):
            raise SpecError("cluster domain", f"not a domain: {self.cluster_domain!r}")
