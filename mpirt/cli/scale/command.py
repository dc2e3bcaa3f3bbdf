"""
`mpirt scale`: more or fewer workers of an elastic job.

Owns: the command line, and asking for the change. The controller carries it out: if this program ends early, the
change goes on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial

import click

from mpirt import names
from mpirt.cli.scale.changes import Change, How, read_change, scaler
from mpirt.cli.scale.cluster import MPI_JOB, Cluster, Job
from mpirt.cli.scale.following import Following, Look, look_at_job, look_at_scaler
from mpirt.cli.scale.progress import Steps, end_of, name_of, refusal
from mpirt.errors import NoPod, UsageError
from mpirt.kubeapi.request.answers import Rejected

_TRIES = 5
_CONFLICT = 409
# What the controller may take beyond the time limit of a change.
_GRACE = 60.0
_EXAMPLES = """
\b
Examples:
  mpirt scale train +2                       two workers more
  mpirt scale train -1                       the worker with the highest number leaves
  mpirt scale train --remove train-worker-1  exactly this one leaves
  mpirt scale train 4                        as kubectl scale does it
  mpirt scale mpijob/train -1 -n ml
"""


@click.command(epilog=_EXAMPLES, context_settings={"ignore_unknown_options": True})
@click.option("--remove", "removed", metavar="POD", multiple=True, help="Remove this worker; may be repeated.")
@click.option(
    "--timeout",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    help="Seconds after which the change has failed.",
)
@click.option("--force", is_flag=True, help="Workers go at the time limit even if they are in use.")
@click.option(
    "--wait/--no-wait", default=True, help="Wait until it is done, and show each worker's way; the default."
)
@click.option("-n", "--namespace", default="", help="The namespace of JOB, if not the kubeconfig's.")
@click.option("--context", default="", help="The kubeconfig's context, if not the current one.")
@click.argument("job")
@click.argument("workers", required=False, metavar="[+N|-N|N]")
def scale(
    *,
    removed: Sequence[str],
    timeout: int,
    force: bool,
    wait: bool,
    namespace: str,
    context: str,
    job: str,
    workers: str | None,
) -> None:
    """Add workers to an elastic job, or remove some.

    JOB is the name of a TrainingJob or an MPIJob, or trainingjob/NAME, mpijob/NAME. A worker that leaves gets no
    new commands, and goes when none runs in it any more; docs/training-job.md describes it.

    It ends with 0 when the change is done, and with 253 when the change has failed or takes too long.
    """
    change = read_change(workers, removed)
    if force and change.how is not How.REMOVE:
        raise UsageError("--force is for workers that leave: give it with -N or --remove")
    cluster = Cluster(os.environ, namespace=namespace, context=context)
    try:
        found = cluster.find(job)
        _check(cluster, found, change)
        follow = _request(cluster, found, change, timeout=timeout, force=force)
        if wait:
            follow(time.monotonic() + timeout + _GRACE)
    finally:
        cluster.close()


def _check(cluster: Cluster, job: Job, change: Change) -> None:
    """Refuse what can't be done, before anything is asked for."""
    if end := end_of(job.body):
        raise NoPod(f"{job.kind.word} {job.name} in {cluster.where} has no workers to scale: it is {end}")
    if not change.pods:
        return
    if job.kind is MPI_JOB:
        raise UsageError(
            "a certain worker of an MPIJob can't be removed: they are numbered without gaps; remove the"
            f" highest one instead: {names.MPIRT} scale {job.name} -1"
        )
    workers = list(map(name_of, cluster.workers(job)))
    for pod in change.pods:
        if pod not in workers:
            raise NoPod(
                f"{pod} is not a worker of {job.name}; its workers are {', '.join(sorted(workers)) or 'none'}"
            )


def _request(cluster: Cluster, job: Job, change: Change, *, timeout: int, force: bool) -> Callable[[float], None]:
    """Ask for the change. Returns what follows it until a moment."""
    steps = Steps(cluster.workers(job))
    if job.kind is MPI_JOB or change.how is How.SET:
        if force:
            raise UsageError("--force is for TrainingJobs; workers of an MPIJob go after five minutes anyway")
        before, wanted = _set(cluster, job, change)
        click.echo(f"{job.kind.word} {job.name}: from {before} to {wanted} workers")
        look: Callable[[], Look] = partial(look_at_job, cluster, job, wanted)
        undo = f"{names.MPIRT} scale {job.kind.word}/{job.name} {before} -n {cluster.namespace}"
    else:
        kind = change.how.value
        name = cluster.create(scaler(change, job.name, timeout=timeout, force=force))
        click.echo(f"{kind.lower()} {name} is created")
        look = partial(look_at_scaler, cluster, kind, name)
        undo = f"kubectl delete {kind.lower()} {name} -n {cluster.namespace}"
    following = Following(steps, look, partial(cluster.workers, job))
    return lambda until: following.wait(until=until, undo=undo)


def _set(cluster: Cluster, job: Job, change: Change) -> tuple[int, int]:
    """Write the number of workers. Returns the one before, and the new one."""
    for left in reversed(range(_TRIES)):
        read = cluster.scale(job)
        wanted = change.of(read.workers)
        if why := refusal(job.body, wanted):
            raise UsageError(f"{job.kind.word} {job.name} has {read.workers} workers: {why}")
        try:
            cluster.set_scale(job, read, wanted)
        except Rejected as error:
            # Somebody else has written it since it was read.
            if error.failure.status != _CONFLICT or not left:
                raise
        else:
            return read.workers, wanted
    raise AssertionError("the last try returns or raises")
