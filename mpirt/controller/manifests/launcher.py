"""
The launcher: a Job, because Jobs have deadlines, and are what other programs look for.

Owns: the launcher's pod. Each attempt is a Job of its own with one pod, which keeps its last log lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpirt import launchenv, names
from mpirt.controller.manifests import config_map as config
from mpirt.controller.manifests import pods, processors, runtime
from mpirt.controller.manifests.supporting import account_name, head, search_domain
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import (
    NEEDED_KEY,
    TEMPLATE_ANNOTATION,
    WORKERS_ANNOTATION,
    object_name,
    template_labels,
)
from mpirt.controller.model.spec import Implementation, JobSpec, Settings
from mpirt.hosts import Form

WAIT_CONTAINER = "mpirt-wait"

# More workers than any job has: the launcher's environment must not change when the job is scaled.
_MOST_DAEMONS = 100_000
_NEEDED_VARIABLE = "MPIRT_WORKERS_NEEDED"
# How long a launcher waits for its workers; meanwhile the status says which ones are missing.
_WAIT_SECONDS = 7 * 24 * 3600
# Kubernetes' default.
_MESSAGE_PATH = "/dev/termination-log"

# The container runtime must not give the node's GPUs to a launcher that runs no ranks.
_NO_GPU = {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}


def launcher_job(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """Return the launcher Job of one attempt: whether another follows is decided by the controller."""
    deadline = {} if spec.run.deadline is None else {"activeDeadlineSeconds": spec.run.deadline}
    final = {"podFailurePolicy": _exits_are_final(spec)} if spec.run.exits_are_final else {}
    return {
        **head(spec, kinds.JOB, annotations=_digests(spec)),
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            **deadline,
            **final,
            "template": launcher_template(spec, settings),
        },
    }


def _exits_are_final(spec: JobSpec) -> dict[str, Any]:
    """Return the policy by which a launcher that exits with an error is not retried, but one that is lost is."""
    codes = {"containerName": spec.launcher.template.main, "operator": "NotIn", "values": [0]}
    return {"rules": [{"action": "FailJob", "onExitCodes": codes}]}


def launcher_template(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """Return the launcher's pod template."""
    template = spec.launcher.template
    group_labels, group_annotations, scheduler = pods.membership(spec, template, settings)
    pod = {
        **template.spec,
        "initContainers": _init_containers(spec, settings),
        "containers": pods.with_main(template, _main(spec, settings)),
        "volumes": [
            *(template.spec.get("volumes") or []),
            *config.volumes(spec),
            *runtime.volumes(spec, settings),
        ],
        "restartPolicy": "Never",
        "hostname": config.launcher_host(spec),
        "subdomain": object_name(kinds.SERVICE, spec.key.name),
        "serviceAccountName": account_name(spec),
        "automountServiceAccountToken": True,
        "tolerations": pods.with_tolerations(template.spec),
        **pods.dns_policy(template.spec),
        **_search(spec, settings),
        **pods.priority(spec, template.spec),
        **scheduler,
    }
    labels = {
        **template_labels(spec.key.kind, spec.key.name, names.LAUNCHER),
        # Rank 0 is its own, if it runs ranks at all.
        **({names.KUBEFLOW_INDEX_LABEL: "0"} if spec.launcher.works_too else {}),
        **group_labels,
    }
    # Annotations of the Job itself can be stripped, but its template is immutable.
    annotations = {**_digests(spec), **runtime.annotation(spec, settings), **group_annotations}
    return pods.pod_template(template, labels=labels, annotations=annotations, spec=pod)


def _digests(spec: JobSpec) -> dict[str, str]:
    return {TEMPLATE_ANNOTATION: spec.launcher_digest, WORKERS_ANNOTATION: spec.worker_digest}


def _search(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """
    Return the DNS search domain for Hydra's workers: published images look up their names before they start.

    Empty on the host's network, where Hydra would take a worker on the same node for the launcher itself.
    """
    pod = spec.launcher.template.spec
    if spec.implementation.form is not Form.HYDRA or pod.get("hostNetwork"):
        return {}
    return {"dnsConfig": pods.with_search(pod, search_domain(spec, settings.cluster_domain))}


def _main(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    mounts = [*config.mounts(spec), *runtime.mounts(spec, settings)]
    env = environment(spec, settings)
    container = pods.extended(pods.main_container(spec.launcher.template), env=env, mounts=mounts)
    return {
        **container,
        **_under_init(spec, settings, container),
        "terminationMessagePolicy": container.get("terminationMessagePolicy") or runtime.LAST_LINES,
    }


def _under_init(spec: JobSpec, settings: Settings, container: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the command under mpirt-init, by which the account is whole when the launcher has ended."""
    command = container.get("command")
    # What an image starts by itself is not known here.
    if not (command and settings.runtime_image and spec.needs_every_worker):
        return {}
    return {"command": [f"{names.RUNTIME_PATH}/bin/{names.INIT}", *command]}


def environment(spec: JobSpec, settings: Settings) -> dict[str, str]:
    """Return the launcher's environment variables."""
    return {
        names.KUBEFLOW_ROLE_VARIABLE: names.LAUNCHER,
        names.SELECTOR_VARIABLE: config.pods_selector(spec, names.WORKER),
        # Others may inject sidecars into the workers, so the container is always named.
        **({names.CONTAINER_VARIABLE: spec.workers.template.main} if spec.has_workers else {}),
        # Not the job's name: a later job may have the same one.
        names.FENCE_VARIABLE: spec.owner.uid,
        **({} if spec.asks_for_hosts else {names.WAIT_VARIABLE: str(_WAIT_SECONDS)}),
        **({names.ACCOUNT_VARIABLE: _message_path(spec)} if spec.needs_every_worker else {}),
        **_mpi(spec, binds=processors.may_bind(spec, settings)),
        **(_of_ranks(spec) if spec.launcher.works_too else _NO_GPU),
    }


def _message_path(spec: JobSpec) -> str:
    given = pods.main_container(spec.launcher.template).get("terminationMessagePath")
    return str(given or _MESSAGE_PATH)


def _of_ranks(spec: JobSpec) -> dict[str, str]:
    return processors.threads(pods.main_container(spec.launcher.template), spec.slots)


def _mpi(spec: JobSpec, *, binds: bool) -> Mapping[str, str]:
    agent, hostfile = names.KUBEXEC_PATH, config.hostfile_path(spec)
    match spec.implementation:
        case Implementation.OPEN_MPI:
            # The version, 4 or 5, is not known; each ignores the variables of the other.
            return {
                **launchenv.open_mpi_4(agent, _MOST_DAEMONS, hostfile=hostfile, slots=spec.slots, binds=binds),
                **launchenv.open_mpi_5(agent, _MOST_DAEMONS, hostfile=hostfile, slots=spec.slots, binds=binds),
            }
        case Implementation.INTEL:
            return launchenv.intel(agent, hostfile=hostfile, slots=spec.slots, binds=binds)
        case _:
            return launchenv.mpich(agent, hostfile=hostfile)


def _init_containers(spec: JobSpec, settings: Settings) -> list[Any]:
    """
    Put a copy of the runtime first, so that the user's own can use it; a wait last, so that it begins after all.

    Without any of the user's, one does both: each container that a pod starts after another costs a second.
    """
    given = spec.launcher.template.spec.get("initContainers") or []
    image, is_copied = settings.runtime_image, runtime.is_copied(spec, settings)
    if not spec.asks_for_hosts:
        return [*runtime.copier(spec, settings), *given]
    wait = _wait_container(spec, settings, image or pods.main_container(spec.launcher.template)["image"])
    if is_copied and not given:
        return [{**wait, "args": [names.RUNTIME_PATH, "--", *_wait(image)]}]
    program, *words = _wait(image)
    return [*runtime.copier(spec, settings), *given, {**wait, "command": [program], "args": words}]


def _wait(runtime_image: str) -> list[str]:
    """Return the words of the program that waits."""
    return [
        f"{names.RUNTIME_PATH}/bin/{names.DISCOVER}" if runtime_image else names.DISCOVER,
        *("--wait", f"$({_NEEDED_VARIABLE})", "--timeout", str(_WAIT_SECONDS)),
    ]


def _wait_container(spec: JobSpec, settings: Settings, image: str) -> dict[str, Any]:
    """
    Return the container that waits for Ready workers: for as many as are needed when the pod starts.

    How many these are is not in the template, so that scaling does not change it.
    """
    needed = {"name": object_name(kinds.CONFIG_MAP, spec.key.name), "key": NEEDED_KEY}
    return {
        **runtime.helper(spec, WAIT_CONTAINER, image, settings),
        "env": [
            {"name": names.SELECTOR_VARIABLE, "value": config.pods_selector(spec, names.WORKER)},
            {"name": _NEEDED_VARIABLE, "valueFrom": {"configMapKeyRef": needed}},
        ],
    }
