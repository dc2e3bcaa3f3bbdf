"""
kubeflow.org MPIJob, v1 and v2beta1.

Owns: reading it into a JobSpec, the notices about fields that are not honoured as written, and the form of its
status, which is mpi-operator's plus the job's history. The two versions are one object: what is stored has the
fields of both, and nothing shows in which version it was written. So a field of one version means the same in the
other.
"""

from __future__ import annotations

from enum import StrEnum

from mpirt import names
from mpirt.controller.dialects.base import US, Dialect, check_job_name, read_common, write_common
from mpirt.controller.dialects.template import read_scheduling, read_template
from mpirt.controller.manifests.pods import containers_beside, main_container
from mpirt.controller.manifests.sshd import starts_sshd, unanswered_probes
from mpirt.controller.model import kinds
from mpirt.controller.model.conditions import Condition, JobStatus, Type
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.objectnames import MOST_WORKERS, worker_names
from mpirt.controller.model.reading import Body, table, text
from mpirt.controller.model.spec import (
    NO_WORKERS,
    CleanPods,
    Creation,
    Elastic,
    Implementation,
    JobKey,
    JobSpec,
    Launcher,
    Owner,
    RunPolicy,
    Template,
    Workers,
)
from mpirt.errors import SpecError
from mpirt.fields import Fields, ValidFields, shown

# mpi-operator's CRD serves only the first one, training-operator's only the second, ours both.
VERSIONS = tuple(Resource(f"kubeflow.org/{version}", "MPIJob", "mpijobs") for version in ("v2beta1", "v1"))

# The managers whose jobs this controller runs: itself, and the operators whose jobs run here unchanged.
_MANAGERS = (None, "", "kubeflow.org/mpi-operator", "kubeflow.org/training-operator", US)

_DEFAULT_RETRIES = 6


class _Restart(StrEnum):
    """The values of restartPolicy, in a replica or its pod template."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ALWAYS = "Always"
    EXIT_CODE = "ExitCode"


class MpiJob(Dialect):
    """The dialect of MPIJobs."""

    def manager(self, body: Body) -> object:
        return table(body, "spec", "runPolicy").get("managedBy")

    def parse(self, body: Body) -> JobSpec:
        owner = self.owner(body)
        check_job_name(owner.key.name)
        spec = Fields(body, "").needed_table("spec")
        replicas = spec.needed_table("mpiReplicaSpecs")
        launcher = replicas.needed_table("Launcher")
        worker = replicas.table("Worker") if replicas.has("Worker") else None
        run = spec.table("runPolicy")
        workers = NO_WORKERS if worker is None else _workers(spec, worker, owner.key.name)
        return JobSpec(
            owner=owner,
            implementation=spec.choice("mpiImplementation", Implementation, Implementation.OPEN_MPI),
            slots=_or(spec.number("slotsPerWorker", least=0), 1),
            workers=workers,
            launcher=_launcher(spec, launcher, _default_creation(owner, workers), has_workers=worker is not None),
            run=_run_policy(spec, run, body),
            scheduling=read_scheduling(body, run),
            notices=(
                *_launcher_notices(launcher),
                *([] if worker is None else _worker_notices(worker, workers.template)),
                *_policy_notices(spec, run),
            ),
        )

    def run_policy(self, body: Body) -> RunPolicy:
        spec = ValidFields(table(body, "spec"), "spec")
        return _run_policy(spec, spec.table("runPolicy"), body)

    def read_status(self, body: Body) -> JobStatus:
        return read_common(table(body, "status"), kinds.MPI_JOB)

    def write_status(self, status: JobStatus, key: JobKey) -> dict[str, object]:
        return write_common(status, key, sorted(status.conditions.values(), key=_order))


MPI_JOB = MpiJob(VERSIONS, f"spec.runPolicy.managedBy to {US}", _MANAGERS)


def _workers(spec: Fields, worker: Fields, job: str) -> Workers:
    main = spec.text("mainContainer")
    template = read_template(worker, main)
    if main and template.main != main:
        problem = f"no container of the workers is named {shown(main)}"
        raise SpecError(spec.at("mainContainer"), problem)
    replicas = _or(worker.number("replicas", least=1, most=MOST_WORKERS), 1)
    return Workers(worker_names(job, replicas), template, _elastic(spec, worker, replicas))


def _elastic(spec: Fields, worker: Fields, replicas: int) -> Elastic | None:
    if not spec.has("elastic"):
        return None
    fields = spec.table("elastic")
    least = _or(fields.number("minReplicas", least=1), 1)
    most = _or(fields.number("maxReplicas", least=1), max(least, replicas))
    if most < least:
        raise SpecError(fields.at("maxReplicas"), f"must not be below minReplicas={least}, got {most}")
    if not least <= replicas <= most:
        raise SpecError(worker.at("replicas"), f"must be from {least} to {most} (spec.elastic), got {replicas}")
    return Elastic(least, most)


def _default_creation(owner: Owner, workers: Workers) -> Creation:
    """Return mpi-operator's default, but for elastic jobs: their launchers ask for hosts when they start."""
    is_early = owner.api_version == VERSIONS[0].api_version and workers.elastic is None
    return Creation.AT_STARTUP if is_early else Creation.WHEN_READY


def _launcher(spec: Fields, launcher: Fields, default: Creation, *, has_workers: bool) -> Launcher:
    replicas = launcher.number("replicas", least=1)
    if replicas not in (None, 1):
        raise SpecError(launcher.at("replicas"), f"must be 1, got {replicas}")
    template = read_template(launcher, spec.text("mainContainer"))
    if not has_workers:
        _check_without_workers(spec, template)
    creation = spec.choice("launcherCreationPolicy", Creation, default)
    return Launcher(template, creation, works_too=bool(spec.flag("runLauncherAsWorker")))


def _check_without_workers(spec: Fields, launcher: Template) -> None:
    main = spec.text("mainContainer")
    if main and launcher.main != main:
        raise SpecError(spec.at("mainContainer"), f"no container of the launcher is named {shown(main)}")
    if spec.has("elastic"):
        raise SpecError(spec.at("elastic"), "needs workers; add spec.mpiReplicaSpecs.Worker or remove it")


def _run_policy(spec: Fields, run: Fields, body: Body) -> RunPolicy:
    clean = spec.choice("cleanPodPolicy", CleanPods, CleanPods.NONE)
    return RunPolicy(
        clean=run.choice("cleanPodPolicy", CleanPods, clean),
        ttl=run.number("ttlSecondsAfterFinished", least=0),
        deadline=run.number("activeDeadlineSeconds", least=1),
        retries=_or(run.number("backoffLimit", least=0), _DEFAULT_RETRIES),
        suspended=bool(run.flag("suspend")),
        tolerates_losses=text(table(body, "metadata", "annotations"), names.TOLERATES_ANNOTATION) == "true",
    )


def _launcher_notices(launcher: Fields) -> list[str]:
    notices = []
    policy = launcher.choice("restartPolicy", _Restart, _Restart.ON_FAILURE)
    if policy is _Restart.ALWAYS:
        raise SpecError(launcher.at("restartPolicy"), "must be Never or OnFailure: a launcher runs to completion")
    if policy is _Restart.EXIT_CODE:
        notices.append(
            f"{launcher.at('restartPolicy')}: ExitCode is treated as OnFailure: every failure is retried, "
            "up to runPolicy.backoffLimit times"
        )
    pod = launcher.table("template").table("spec")
    if pod.flag("automountServiceAccountToken") is False:
        notices.append(
            f"{pod.at('automountServiceAccountToken')}: the launcher gets a token, "
            "because it starts commands in workers"
        )
    return notices


def _worker_notices(worker: Fields, template: Template) -> list[str]:
    notices = []
    pod = worker.table("template").table("spec")
    for fields in (worker, pod):
        policy = fields.choice("restartPolicy", _Restart, _Restart.ALWAYS)
        if policy is not _Restart.ALWAYS:
            notices.append(
                f"{fields.at('restartPolicy')}: {policy} has no effect: workers are pods of a StatefulSet, "
                "which are always restarted"
            )
    main, place = main_container(template), f"{pod.at('containers')}, {template.main}"
    if starts_sshd(main):
        notices.append(f"{place}: sshd is not started: nothing connects by ssh; the container waits instead")
    for name, asked in unanswered_probes(main, containers_beside(template)).items():
        notices.append(
            f"{place}: {name} of {asked} is removed: only sshd would answer it, and sshd is not started"
        )
    return notices


def _policy_notices(spec: Fields, run: Fields) -> list[str]:
    notices = []
    old, new = spec.text("cleanPodPolicy"), run.text("cleanPodPolicy")
    if old and new and old != new:
        notices.append(f"{spec.at('cleanPodPolicy')}: {old} is overruled by {run.at('cleanPodPolicy')}: {new}")
    return notices


def _or(number: int | None, default: int) -> int:
    return default if number is None else number


def _order(condition: Condition) -> tuple[bool, int]:
    return condition.status, list(Type).index(condition.type)
