"""
Digests of what the user wrote, to detect changes.

Owns: which parts of a job's spec shape its workers and its launcher, so that changing one must replace them. A
digest covers what the user wrote, never what was built from it: another version of the controller builds other
pods, and must not disturb a running job. The number of workers is not part of it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from mpirt.controller.model.spec import JobSpec, Template


def digest(*parts: Any) -> str:
    """Return a digest that is the same for the same values, on every machine and in every process."""
    written = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def worker_digest(spec: JobSpec) -> str:
    """Return the digest of the parts of the spec that shape a worker."""
    return digest(_template(spec.workers.template), *_scheduling(spec))


def launcher_digest(spec: JobSpec) -> str:
    """Return the digest of the parts of the spec that shape the launcher."""
    return digest(
        _template(spec.launcher.template),
        spec.launcher.works_too,
        spec.workers.template.main,
        spec.implementation,
        spec.slots,
        *_scheduling(spec),
    )


def _template(template: Template) -> list[Any]:
    return [dict(template.labels), dict(template.annotations), dict(template.spec), template.main]


def _scheduling(spec: JobSpec) -> tuple[str, str]:
    if spec.scheduling is None:
        return "", ""
    return spec.scheduling.queue, spec.scheduling.priority_class
