"""
Digests: short names for what was asked for.

Owns: what of a job's spec shapes its workers and its launcher, so that a change of it must replace them. That is
what the user wrote, never what was built from it: another version of the controller builds other pods, and must
not disturb a running job. How many workers there are is not part of it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from mpirt.controller.model.spec import JobSpec, Template


def digest(*parts: Any) -> str:
    """The same for the same values, wherever and whenever."""
    written = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def worker_digest(spec: JobSpec) -> str:
    """Of what makes a worker the worker it is."""
    return digest(_template(spec.workers.template), *_scheduling(spec))


def launcher_digest(spec: JobSpec) -> str:
    """Of what makes the launcher the launcher it is."""
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
