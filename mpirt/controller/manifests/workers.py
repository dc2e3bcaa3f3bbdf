"""
The workers: a StatefulSet, because its pods have predictable names and are recreated under the same names.

Owns: what a worker needs: the stub at the path that launchers' daemons check for, and the keeper. No API token, no
runtime folder.
"""

from __future__ import annotations

from typing import Any

from mpirt import names
from mpirt.controller.manifests import config_map as config
from mpirt.controller.manifests import pods
from mpirt.controller.manifests.meta import head
from mpirt.controller.manifests.service import search_domain
from mpirt.controller.manifests.sshd import idle_command, unanswered_probes
from mpirt.controller.manifests.tolerations import with_tolerations
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import (
    EARLIER_ANNOTATION,
    GENERATION_ANNOTATION,
    TEMPLATE_ANNOTATION,
    object_name,
    pod_labels,
    template_labels,
)
from mpirt.controller.model.spec import JobSpec, Settings, Template

_FIRST_GENERATION = "1"
_FILES = {config.KUBEXEC: config.KUBEXEC}

# Takes the place of the digest: the StatefulSet creates no more workers.
OVER = "over"
# Kubernetes' event about a worker that can't be recreated shows this name.
NO_PRIORITY_CLASS = "mpirt-job-is-over"


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
            "template": _over(worker_template(spec, settings)) if over else worker_template(spec, settings),
        },
    }


def _over(template: dict[str, Any]) -> dict[str, Any]:
    return {**template, "spec": {**template["spec"], "priorityClassName": NO_PRIORITY_CLASS}}


def worker_template(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    """Return the workers' pod template."""
    template = spec.workers.template
    main = pods.extended(
        _waiting(template),
        env=pods.role_variable(names.WORKER),
        mounts=[{"name": pods.CONFIG_VOLUME, "mountPath": names.MPI_FOLDER}],
    )
    pod = {
        **template.spec,
        "containers": pods.with_main(template, main),
        "volumes": [*(template.spec.get("volumes") or []), _config_volume(spec, settings)],
        "dnsConfig": pods.with_search(template.spec, search_domain(spec, settings.cluster_domain)),
        "restartPolicy": "Always",
        "tolerations": with_tolerations(template.spec),
        **_token(template),
        **pods.dns_policy(template.spec),
        **pods.priority(spec, template.spec),
        **pods.scheduler(spec, template, settings),
    }
    labels = template_labels(spec.key.kind, spec.key.name, names.WORKER)
    return pods.pod_template(
        template,
        labels={**labels, **pods.group_labels(spec, template, settings)},
        annotations={TEMPLATE_ANNOTATION: spec.worker_digest, **pods.group_annotations(spec, template, settings)},
        spec=pod,
    )


def _config_volume(spec: JobSpec, settings: Settings) -> dict[str, Any]:
    if not settings.keepers:
        return pods.config_volume(spec, _FILES)
    return pods.config_volume_with(spec, _FILES, settings.keepers)


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
