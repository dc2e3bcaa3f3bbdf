"""
The headless Service: names in the DNS for the job's pods.

Owns: nothing but the Service. Launching needs no names; Hydra's proxies call their launcher back by its name, and
programs may talk to each other by theirs. Pods have names before they are Ready, too: who is Ready decides who is
used, not who can be found.
"""

from __future__ import annotations

from typing import Any

from mpirt import names
from mpirt.controller.manifests.meta import head
from mpirt.controller.model import kinds
from mpirt.controller.model.objectnames import OPERATOR
from mpirt.controller.model.spec import JobSpec


def service(spec: JobSpec) -> dict[str, Any]:
    """The job's Service."""
    return {
        **head(spec, kinds.SERVICE),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {**OPERATOR, names.KUBEFLOW_JOB_LABEL: spec.key.name},
        },
    }


def search_domain(spec: JobSpec, cluster_domain: str) -> str:
    """What makes a pod's short name a name in the DNS."""
    return f"{spec.key.name}.{spec.key.namespace}.svc.{cluster_domain}"
