"""
Which processors ranks get, and how many threads their libraries start.

Owns: whether the launcher may bind ranks to processors, and each rank's share of its container's CPUs. A container
without exclusive CPUs may run on all processors of its node: the daemons of two pods would bind their ranks to the
same ones, and libraries would start a thread for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from mpirt import launchenv, names
from mpirt.controller.manifests import pods
from mpirt.controller.model import quantities
from mpirt.controller.model.reading import rows, table, text, texts
from mpirt.controller.model.spec import JobSpec, Settings, Template


def may_bind(spec: JobSpec, settings: Settings) -> bool:
    """Whether ranks are bound as their MPI likes: the user says where, or no other pod has their processors."""
    return launchenv.places_ranks(_words(spec)) or (settings.exclusive_cpus and _are_exclusive(spec))


def threads(container: Mapping[str, Any], ranks: int) -> dict[str, str]:
    """Return the variable that names each rank's share of the container's CPUs; empty if it asks for none."""
    cpus = _amount(container, "limits", "cpu") or _amount(container, "requests", "cpu")
    return {names.THREADS_VARIABLE: str(max(1, int(cpus / ranks)))} if cpus and ranks else {}


def _words(spec: JobSpec) -> list[str]:
    """Return all words of the launcher's command, and its variables."""
    main = pods.main_container(spec.launcher.template)
    variables = (f"{text(row, 'name')}={text(row, 'value')}" for row in rows(main, "env"))
    return [*texts(main, "command"), *texts(main, "args"), *variables]


def _are_exclusive(spec: JobSpec) -> bool:
    """Whether all ranks run in containers to which a node gives whole CPUs that no other container may use."""
    templates = [spec.workers.template] if spec.has_workers else []
    return all(map(_has_own, [*templates, *([spec.launcher.template] if spec.launcher.works_too else [])]))


def _has_own(template: Template) -> bool:
    containers = [*rows(template.spec, "initContainers"), *rows(template.spec, "containers")]
    cpus = _amount(pods.main_container(template), "limits", "cpu")
    return cpus == int(cpus) and all(_is_guaranteed(one) for one in containers)


def _is_guaranteed(container: Mapping[str, Any]) -> bool:
    """Whether CPU and memory are limited to what is requested."""
    limits = {what: _amount(container, "limits", what) for what in ("cpu", "memory")}
    requests = {what: _amount(container, "requests", what) or limit for what, limit in limits.items()}
    return all(limits.values()) and limits == requests


def _amount(container: Mapping[str, Any], part: str, what: str) -> Decimal:
    """Return how much is requested or allowed; 0 is as good as nothing."""
    given = table(container, "resources", part).get(what)
    return Decimal(0) if given is None else quantities.amount(str(given))
