"""
The launcher's permissions.

Owns: its ServiceAccount, Role and RoleBinding. The launcher may start commands in pods of the job, by name, and
read pods; nothing else. Starting a command needs both verbs: Kubernetes up to 1.34 checks get, later versions
check create, too.
"""

from __future__ import annotations

from typing import Any

from mpirt.controller.manifests.meta import head
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import object_name
from mpirt.controller.model.spec import JobSpec


def own_account(spec: JobSpec) -> str:
    """The service account that the user has chosen for the launcher; empty if there is none."""
    chosen = spec.launcher.template.spec.get("serviceAccountName") or spec.launcher.template.spec.get(
        "serviceAccount"
    )
    return str(chosen or "")


def account_name(spec: JobSpec) -> str:
    """The service account that the launcher runs under."""
    return own_account(spec) or object_name(kinds.SERVICE_ACCOUNT, spec.key.name)


def service_account(spec: JobSpec) -> dict[str, Any]:
    """Return the launcher's ServiceAccount, for jobs whose user has chosen none."""
    return head(spec, kinds.SERVICE_ACCOUNT)


def role(spec: JobSpec, workers: list[str]) -> dict[str, Any]:
    """Return the Role with the launcher's permissions in these workers."""
    start = {"apiGroups": [""], "resources": ["pods/exec"], "resourceNames": workers, "verbs": ["get", "create"]}
    look = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    # Without resourceNames a rule would apply to all pods.
    return {**head(spec, kinds.ROLE), "rules": [start, look] if workers else [look]}


def role_binding(spec: JobSpec) -> dict[str, Any]:
    """Return the RoleBinding that grants the Role to the launcher's service account."""
    subject = {"kind": kinds.SERVICE_ACCOUNT, "name": account_name(spec), "namespace": spec.key.namespace}
    reference = {
        "apiGroup": kinds.RESOURCES[kinds.ROLE].group,
        "kind": kinds.ROLE,
        "name": object_name(kinds.ROLE, spec.key.name),
    }
    return {**head(spec, kinds.ROLE_BINDING), "subjects": [subject], "roleRef": reference}
