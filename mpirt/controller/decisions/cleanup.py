"""
What is left of a job that is over.

Owns: the decisions which pods go by the clean-up policy, and when the job itself goes. A finished job never gets a
pod again: workers that are kept lose their StatefulSet, which would replace one that a drained node ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from mpirt.controller.manifests.meta import plain_owner_reference
from mpirt.controller.model import kinds
from mpirt.controller.model.actions import Action, Delete, Patch
from mpirt.controller.model.reading import number, table
from mpirt.controller.model.spec import CleanPods, JobSpec, Owner
from mpirt.controller.observed.facts import JobEnd
from mpirt.controller.observed.observe import Live, Observed
from mpirt.controller.observed.pods import Pod


def wants_workers(spec: JobSpec, end: JobEnd | None) -> bool:
    """Whether there is to be something that makes workers."""
    return end is None and not spec.run.suspended and spec.has_workers


def worker_cleanup(spec: JobSpec, observed: Observed, end: JobEnd | None) -> Iterator[Action]:
    """The pods that workers leave of a job that is over. They never end by themselves, so Running means all."""
    if keeps_workers(spec, end):
        yield from (_kept(observed.owner, pod) for pod in observed.workers if not _is_safe(observed, pod))
        return
    why = "the job runs again" if end is None else f"the job is over: cleanPodPolicy {spec.run.clean}"
    yield from (Delete(kinds.POD, pod.name, pod.uid, why) for pod in observed.kept if pod.deleted is None)


def keeps_workers(spec: JobSpec, end: JobEnd | None) -> bool:
    """Whether the workers' pods stay when what made them goes."""
    return end is not None and spec.run.clean is CleanPods.NONE


def may_go(observed: Observed, workers: Live) -> bool:
    """Whether all pods that the StatefulSet has made are known, so that none is left behind without an owner."""
    return number(table(workers.body, "status"), "replicas") <= len(observed.workers)


def launcher_cleanup(spec: JobSpec, observed: Observed, end: JobEnd | None) -> list[Action]:
    """The launcher's pods, where they are to go. The Job stays: it tells how the job ended."""
    if end is None or spec.run.clean is not CleanPods.ALL:
        return []
    return [
        Delete(kinds.POD, pod.name, pod.uid, "the job is over: cleanPodPolicy All")
        for pod in observed.launchers
        if pod.deleted is None
    ]


def expiry(spec: JobSpec, end: JobEnd | None) -> datetime | None:
    """When the job is to be deleted."""
    if end is None or end.at is None or spec.run.ttl is None:
        return None
    return end.at + timedelta(seconds=spec.run.ttl)


def _is_safe(observed: Observed, pod: Pod) -> bool:
    """Whether it goes with the job although nothing controls it any more, or is on its way out already."""
    return observed.owner.uid in pod.owners or pod.deleted is not None


def _kept(owner: Owner, pod: Pod) -> Patch:
    operations = (
        {"op": "test", "path": "/metadata/uid", "value": pod.uid},
        {"op": "add", "path": "/metadata/ownerReferences/-", "value": plain_owner_reference(owner)},
    )
    return Patch(kinds.POD, pod.name, operations, "the job is over and keeps this worker: cleanPodPolicy None")
