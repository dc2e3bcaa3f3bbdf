"""
The workers: a StatefulSet, whose pods are recreated under the same names, or pods of their own.

Owns: what a worker needs: the stub at the path that launchers' daemons check for, and the keeper; no API token, no
runtime folder. What a pod without a StatefulSet has beside the template: its name, its number, and the job as its
owner; it is never restarted in place. And the label training.kubeflow.org/replica-index.
"""

from __future__ import annotations

from typing import Any

from mpirt import names
from mpirt.controller.manifests import config_map as config
from mpirt.controller.manifests import pods, processors
from mpirt.controller.manifests.sshd import idle_command, unanswered_probes
from mpirt.controller.manifests.supporting import head, owner_reference, search_domain
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import (
    EARLIER_ANNOTATION,
    GENERATION_ANNOTATION,
    TEMPLATE_ANNOTATION,
    object_name,
    pod_labels,
    template_labels,
    worker_number,
)
from mpirt.controller.model.reading import digest, rows, text
from mpirt.controller.model.roster import Roster, Source
from mpirt.controller.model.spec import JobSpec, Settings, Template

_FIRST_GENERATION = "1"
_FILES = {config.KUBEXEC: config.KUBEXEC}

# Takes the place of the digest: the StatefulSet creates no more workers.
OVER = "over"
# Kubernetes' event about a worker that can't be recreated shows this name.
NO_PRIORITY_CLASS = "mpirt-job-is-over"

# The gate by which Kueue holds pods until it has chosen a node for each. Kueue adds it to the templates.
_KUEUE_GATE = "kueue.x-k8s.io/topology"


def stateful_set(
    spec: JobSpec,
    settings: Settings,
    *,
    replicas: int | None = None,
    has_previous: bool = False,
    over: bool = False,
) -> dict[str, Any]:
    """
    Return the job's StatefulSet, of a job that runs or, if `over`, of a finished job that keeps its workers.

    `replicas`: how many, if not as many as the job wants, because some are about to leave.

    `has_previous`: pods of a deleted StatefulSet still have the names of its pods. Kubernetes backs off, up to
    five minutes, unless the object changes; so an annotation changes when those pods are gone.

    `over`: its pods stay, but none that goes is replaced, after a drain for example. A StatefulSet has no field
    for that, but the API server rejects pods with an unknown priority class.
    """
    labels = pod_labels(spec.key.kind, spec.key.name, names.WORKER)
    template = worker_template(spec, settings)
    if over:
        template["spec"]["priorityClassName"] = NO_PRIORITY_CLASS
    annotations = {
        TEMPLATE_ANNOTATION: OVER if over else spec.worker_digest,
        GENERATION_ANNOTATION: _FIRST_GENERATION,
        EARLIER_ANNOTATION: "ending" if has_previous else "gone",
    }
    return {
        **head(spec, kinds.STATEFUL_SET, annotations=annotations),
        "spec": {
            "replicas": spec.workers.replicas if replicas is None else replicas,
            "serviceName": object_name(kinds.SERVICE, spec.key.name),
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete" if over else "RollingUpdate"},
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


def worker_template(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """Return the workers' pod template."""
    template = spec.workers.template
    group_labels, group_annotations, scheduler = pods.membership(spec, template, settings)
    main = pods.extended(
        _waiting(template),
        env={
            names.KUBEFLOW_ROLE_VARIABLE: names.WORKER,
            **processors.threads(pods.main_container(template), spec.slots),
        },
        mounts=[{"name": config.CONFIG_VOLUME, "mountPath": names.MPI_FOLDER}],
    )
    pod = {
        **template.spec,
        "containers": pods.with_main(template, main),
        "volumes": [*(template.spec.get("volumes") or []), _config_volume(spec, settings)],
        "dnsConfig": pods.with_search(template.spec, search_domain(spec, settings.cluster_domain)),
        "restartPolicy": "Always",
        "tolerations": pods.with_tolerations(template.spec),
        **_token(template),
        **pods.dns_policy(template.spec),
        **pods.priority(spec, template.spec),
        **scheduler,
    }
    labels = template_labels(spec.key.kind, spec.key.name, names.WORKER)
    return pods.pod_template(
        template,
        labels={**labels, **group_labels},
        annotations={TEMPLATE_ANNOTATION: spec.worker_digest, **group_annotations},
        spec=pod,
    )


def _config_volume(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    if not settings.keepers:
        return config.config_volume(spec, _FILES)
    return config.config_volume_with(spec, _FILES, settings.keepers)


def _waiting(template: Template) -> dict[str, Any]:
    """Return the main container. If it was given nothing to run, or sshd, it waits, and has no probes of sshd."""
    main = pods.main_container(template)
    left_out = unanswered_probes(main, pods.containers_beside(template))
    kept = {name: value for name, value in main.items() if name not in left_out}
    return {**kept, **idle_command(main)}


def _token(template: Template) -> dict[str, Any]:
    """Turn the API token off, unless the user sets a service account or automountServiceAccountToken."""
    asked = ("serviceAccountName", "serviceAccount", "automountServiceAccountToken")
    if any(template.spec.get(field) not in (None, "") for field in asked):
        return {}
    return {"automountServiceAccountToken": False}


def worker_pod(spec: JobSpec, settings: Settings, name: str, roster: Roster) -> dict[str, Any]:
    """Return the pod of the worker with that name. One that is about to join is no host yet."""
    template = worker_template(spec, settings)
    metadata, change = template["metadata"], roster.change
    if change is None or name not in change.joining:
        held, added_by = {}, {}
    else:
        held = {names.DRAINING_ANNOTATION: str(change.source)}
        added_by = {names.SCALE_OUT_LABEL: change.name} if change.source is Source.SCALE_OUT else {}
    return {
        "apiVersion": kinds.RESOURCES[kinds.POD].api_version,
        "kind": kinds.POD,
        "metadata": {
            "name": name,
            "namespace": spec.key.namespace,
            "labels": {
                **metadata["labels"],
                names.TRAINING_INDEX_LABEL: str(worker_number(name)),
                **added_by,
            },
            "annotations": {**metadata["annotations"], **held},
            "ownerReferences": [owner_reference(spec.owner)],
        },
        "spec": {
            **template["spec"],
            "restartPolicy": "Never",
            "hostname": name,
            "subdomain": object_name(kinds.SERVICE, spec.key.name),
        },
    }


def pod_shape(spec: JobSpec, name: str, roster: Roster) -> str:
    """
    Return a digest that is the same for pods of workers that differ only by their names.

    What the API server rejects because of a quota or a policy, it rejects for all of them.
    """
    change = roster.change
    added_by = change.uid if change is not None and name in change.joining else ""
    return digest(kinds.POD, spec.worker_digest, added_by)


def worker_indices(spec: JobSpec) -> dict[str, str]:
    """Return each worker's label value by pod name; empty if Kueue does not place the job by topology."""
    if not any(text(row, "name") == _KUEUE_GATE for row in rows(spec.workers.template.spec, "schedulingGates")):
        return {}
    first = 1 if spec.launcher.works_too else 0
    workers = spec.workers.names
    return {name: str(index) for index, name in enumerate(workers, start=first)}
