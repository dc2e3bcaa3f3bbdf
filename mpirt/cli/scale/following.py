"""
Following a change of a job's workers until it is done.

Owns: the looks at the cluster, one a second, and what is said meanwhile. An API server that is away is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import click

from mpirt.cli.scale.cluster import MPI_JOB, Cluster, Job
from mpirt.cli.scale.progress import Outcome, Steps, aims_at, end_of, has_workers, is_taken_up, outcome_of
from mpirt.errors import NoPod, NotReady, Unreachable
from mpirt.kubeapi.request.answers import JsonObject, NotFound

_PAUSE = 1.0
# A controller takes a change up at once, unless another one is under way.
_SILENT_FOR = 15.0

_UNHEARD = (
    "no controller has taken it up yet; another change may be under way, or none runs: "
    "kubectl get deployments --all-namespaces --selector=app.kubernetes.io/name=mpirt-controller"
)


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of a change: whether a controller knows of it, and its end."""

    taken_up: bool
    outcome: Outcome | None


def look_at_scaler(cluster: Cluster, kind: str, name: str) -> Look:
    """Look at a ScaleIn or ScaleOut. Raises NoPod if it was deleted."""
    try:
        body = cluster.scaler(kind, name)
    except NotFound as error:
        raise NoPod(f"{kind.lower()} {name} was deleted; what it had begun is undone") from error
    return Look(is_taken_up(body), outcome_of(body))


def look_at_job(cluster: Cluster, job: Job, wanted: int) -> Look:
    """Look at a job whose number of workers was set. Raises NoPod if it is over, or another number is wanted."""
    body = cluster.job(job)
    if end := end_of(body):
        raise NoPod(f"{job.kind.word} {job.name} is {end}")
    now = cluster.scale(job).workers
    if now != wanted:
        raise NoPod(
            f"{job.kind.word} {job.name} is to have {now} workers now: somebody has changed the number again"
        )
    is_done = has_workers(cluster.workers(job), wanted)
    outcome = Outcome(succeeded=True, message=f"{wanted} of {wanted} workers are Ready") if is_done else None
    return Look(job.kind is MPI_JOB or aims_at(body, wanted), outcome)


class Following:
    """One change that is followed."""

    def __init__(self, steps: Steps, look: Callable[[], Look], workers: Callable[[], list[JsonObject]]) -> None:
        self._steps, self._look, self._workers = steps, look, workers
        self._is_away = False
        self._heard_by: float | None = time.monotonic() + _SILENT_FOR

    def wait(self, *, until: float, undo: str) -> None:
        """Say what becomes of each worker until the change is done. Raises NotReady if it fails, or is late."""
        try:
            while (outcome := self._next()) is None:
                if time.monotonic() > until:
                    raise NotReady(f"the change is not done yet, and goes on; undo it by: {undo}")
                time.sleep(_PAUSE)
        except KeyboardInterrupt:
            click.echo(f"not waited for any longer; the change goes on; undo it by: {undo}", err=True)
            raise
        if not outcome.succeeded:
            raise NotReady(outcome.message)
        click.echo(f"done: {outcome.message}")

    def _next(self) -> Outcome | None:
        """Say what is new. Returns the end of the change, if it has come."""
        try:
            found = self._look()
            news = list(self._steps.news(self._workers()))
        except Unreachable as error:
            if not self._is_away:
                click.echo(f"waiting for the API server: {error}", err=True)
            self._is_away = True
            return None
        self._is_away = False
        for line in news:
            click.echo(line)
        self._mind_silence(found)
        return found.outcome

    def _mind_silence(self, found: Look) -> None:
        """Say once that nobody has taken the change up."""
        if found.taken_up:
            self._heard_by = None
        elif self._heard_by is not None and time.monotonic() > self._heard_by:
            self._heard_by = None
            click.echo(_UNHEARD, err=True)
