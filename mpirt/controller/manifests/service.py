"""
The headless Service: DNS names for the job's pods.

Owns: nothing but the Service. Launching needs no DNS names, but Hydra's proxies connect back to their launcher by
its name, and programs may connect to each other by theirs. Pods have names even before they are Ready: readiness
decides which pods are used, not which can be resolved.
"""

from __future__ import annotations

from typing import Any

from mpirt.controller.manifests.meta import head
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import job_selector
from mpirt.controller.model.spec import JobSpec


def service(spec: JobSpec) -> dict[str, Any]:
    """The job's Service."""
    return {
        **head(spec, kinds.SERVICE),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": job_selector(spec.key.kind, spec.key.name),
        },
    }


def search_domain(spec: JobSpec, cluster_domain: str) -> str:
    """Return the DNS search domain in which the short names of the job's pods resolve."""
    return f"{spec.key.name}.{spec.key.namespace}.svc.{cluster_domain}"
