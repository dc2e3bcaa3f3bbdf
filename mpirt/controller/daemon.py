"""
Assembles the parts of the controller and keeps them running.

Owns: the threads: which there are, in what order they start and stop, and whether they are healthy; and which
kinds of objects there are on this cluster, of those that CRDs define. Decisions are made elsewhere.

Informers start at once, on every replica. Workers start when the caches are synced and this replica leads. Any of
the CRDs may be missing, serve other versions, or be broken, and comes or changes at any time: that never holds
up the other kinds.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Generic

from mpirt.controller.cluster.discovery import Discovery, Fixed
from mpirt.controller.cluster.informer import Informer, Where
from mpirt.controller.cluster.lease import Elector
from mpirt.controller.cluster.link import Link, endpoint_of
from mpirt.controller.cluster.questions import PodExecutor, Questions
from mpirt.controller.cluster.writes import Writer
from mpirt.controller.decisions.decide import Planner
from mpirt.controller.dialects.base import APPLY
from mpirt.controller.dialects.training_job import SCALERS
from mpirt.controller.loop.queue import Key, Queue
from mpirt.controller.loop.reconcile import Access, Leader, Reconciler, Result, Turn
from mpirt.controller.model import kinds
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.objectnames import ANY_OPERATOR, OPERATOR, selector
from mpirt.controller.model.spec import JobKey, Settings
from mpirt.controller.monitoring.logs import Log, report_mistake
from mpirt.controller.monitoring.metrics import Metrics
from mpirt.controller.observed.pods import EVICTION_EVENTS, FAILED_CREATE_EVENTS
from mpirt.controller.observed.store import Store
from mpirt.controller.options import Options

# A failed watch is repeated every 15 s at the latest, and API servers are restarted within a minute.
_LASTING = 60.0


class Availability:
    """The kinds of CRDs. Every method may be called from any thread."""

    def __init__(self, informers: Iterable[Informer], jobs: Collection[str], others: Collection[str]) -> None:
        """`jobs`: the kinds of jobs; `others`: further kinds, which jobs need."""
        kinds = {*jobs, *others}
        self._informers = {each.resource.kind: each for each in informers if each.resource.kind in kinds}
        self._jobs = tuple(jobs)

    def table(self) -> dict[str, bool]:
        """Return for each kind whether its objects are known and acted upon."""
        return {kind: each.synced.is_set() and not each.is_missing for kind, each in self._informers.items()}

    def jobs(self) -> list[str]:
        """Return the kinds of jobs that are acted upon."""
        table = self.table()
        return [kind for kind in self._jobs if table[kind]]

    def missing(self) -> list[str]:
        """Return why there are no objects of some kinds."""
        return [each.problem for each in self._informers.values() if each.is_missing]

    def is_idle(self) -> bool:
        """Whether there is no kind of job at all."""
        return all(self._informers[kind].is_missing for kind in self._jobs)

    def are_listed(self, kinds: Iterable[str]) -> bool:
        """Whether all objects of these kinds are known; of a missing kind there are none."""
        return all(self._informers[kind].synced.is_set() for kind in kinds)

    def holds_up(self, informer: Informer) -> bool:
        """Whether nothing can be done until this informer has listed its kind."""
        is_broken = informer.resource.kind in self._informers and informer.problem
        return not (informer.synced.is_set() or is_broken)


def lasting_failures(informers: Iterable[Informer]) -> list[str]:
    """Return which kinds could be read once, and for a while can't be any more, with the reason."""
    failing = [(each, each.failing_for()) for each in informers if each.synced.is_set()]
    return [
        f"{each.resource.plural} could not be listed or watched for {seconds:.0f} s: {each.problem}"
        for each, seconds in failing
        if seconds > _LASTING
    ]


# One reconciliation is a few writes, each with a time limit. A worker that takes longer is stuck.
_STUCK_AFTER = 180.0
_ENDS_WITHIN = 8.0
# Shortest delay until the time that a plan asks for: one that has passed must not keep a worker busy.
_SOONEST = 0.2
# Between two looks whether the objects that a job needs are listed.
_UNTIL_LISTED = timedelta(seconds=1)


Settle = Callable[[Queue[Key]], None]


class WaitingQueue(Generic[Key]):
    """A queue with a lock and a condition variable. Every method may be called from any thread."""

    def __init__(self, queue: Queue[Key], clock: Callable[[], float]) -> None:
        self._queue = queue
        self._clock = clock
        self._bell = threading.Condition()
        self._closed = False

    def add(self, keys: Collection[Key]) -> None:
        """Queue these keys, and wake waiting workers if there are any."""
        if not keys:
            return
        with self._bell:
            for key in keys:
                self._queue.add(key)
            self._bell.notify_all()

    def take(self) -> Key | None:
        """Wait for the next key and return it; None when the queue is closed."""
        with self._bell:
            while not self._closed:
                key = self._queue.take(self._clock())
                if key is not None:
                    return key
                date = self._queue.next_date()
                self._bell.wait(None if date is None else max(0.0, date - self._clock()))
            return None

    def settle(self, how: Settle[Key]) -> None:
        """Give a key back: `how` calls done(), changed() or failed() of the queue."""
        with self._bell:
            how(self._queue)
            self._bell.notify_all()

    def close(self) -> None:
        """Close the queue: take() returns None in every thread."""
        with self._bell:
            self._closed = True
            self._bell.notify_all()

    def depth(self) -> int:
        """Return how many keys are ready."""
        with self._bell:
            return self._queue.depth()


class Daemon:
    """The controller."""

    def __init__(
        self,
        planners: Sequence[Planner],
        options: Options,
        link: Link,
        metrics: Metrics,
        log: Log,
        *,
        identity: str,
    ) -> None:
        self._log = log
        self._metrics = metrics
        clock = partial(datetime.now, UTC)
        jobs, scalers = (one.kind.versions for one in planners), ((one,) for one in SCALERS)
        self._jobs, self._scalers = _discoveries(jobs, link, log), _discoveries(scalers, link, log)
        self._groups = _groups(options.settings, link, log)
        self._store = Store(self._jobs, clock=clock, lock=threading.Lock())
        self._queue: WaitingQueue[JobKey] = WaitingQueue(
            # Namespaces take turns.
            Queue(random.random, group=lambda key: key.namespace),
            time.monotonic,
        )
        self._informers = self._make_informers(options, link)
        self._kinds = Availability(self._informers, self._jobs, self._scalers)
        self._elector = (
            Elector(link, options.lease_namespace, options.lease_name, identity, log, terms=options.terms)
            if options.lease
            else None
        )
        executor = PodExecutor(partial(endpoint_of, options.kubeconfig))
        self._questions = Questions(executor, clock=clock, answered=lambda key: self._queue.add([key]))
        self._reconciler = self._make_reconciler(planners, options, link, clock)
        self._workers = [
            threading.Thread(target=self._work, name=f"worker {n}", daemon=True) for n in range(options.workers)
        ]
        self._busy: dict[str, float] = {}
        self._begun = threading.Lock()
        self._stopping = threading.Event()
        self._show_metrics()

    def leads(self) -> bool:
        """Whether this process may write."""
        return self._elector is None or self._elector.leads()

    def start(self, *, lost: Callable[[], None]) -> None:
        """Start the threads. `lost` is called when this process has lost the lease and has to exit."""
        for informer in self._informers:
            informer.start()
        # Waiting for the caches must not keep the elector's thread from renewing the lease.
        aside = threading.Thread(target=self._begin, name="begin", daemon=True)
        if self._elector is None:
            aside.start()
        else:
            self._elector.start(gained=aside.start, lost=lost)

    def stop(self) -> None:
        """Stop the threads: the workers first, so that nothing is written once the lease is released."""
        self._stopping.set()
        self._queue.close()
        until = time.monotonic() + _ENDS_WITHIN
        with self._begun:
            for worker in self._workers:
                if worker.ident is not None:
                    worker.join(max(0.0, until - time.monotonic()))
        self._questions.close()
        if self._elector is not None:
            self._elector.stop()
        for informer in self._informers:
            informer.stop()
        for informer in self._informers:
            informer.join(max(0.0, until - time.monotonic()))

    def unready(self) -> list[str]:
        """Return what this process is still waiting for. A replica that does not lead can be ready, too."""
        without = ["no kind of job is served"] if self._kinds.is_idle() else []
        unlisted = [
            f"{each.resource.plural} are not listed yet{each.problem and f': {each.problem}'}"
            for each in self._informers
            if not each.synced.is_set()
        ]
        groups = filter(None, (one.problem() for one in self._groups.values()))
        return [*without, *groups, *unlisted, *lasting_failures(self._informers)]

    def missing(self) -> list[str]:
        """Return why there are no objects of some kinds. The others are acted upon without them."""
        return self._kinds.missing()

    def unhealthy(self) -> list[str]:
        """Return the failures that only a restart can fix."""
        now = time.monotonic()
        dead = [f"the watch of {each.resource.plural} is stuck" for each in self._informers if not each.is_alive()]
        stuck = [f"{name} is stuck" for name, since in list(self._busy.items()) if now - since > _STUCK_AFTER]
        ended = [
            f"{each.name} has ended" for each in self._workers if each.ident is not None and not each.is_alive()
        ]
        is_renewed = self._elector is None or self._elector.is_alive()
        lease = [] if is_renewed else ["the lease is no longer renewed"]
        return [] if self._stopping.is_set() else [*dead, *stuck, *ended, *lease]

    def _show_metrics(self) -> None:
        self._metrics.show(
            depth=self._queue.depth,
            jobs=lambda: len(self._store.jobs()),
            launchers=lambda: self._store.names(kinds.JOB),
            leads=self.leads,
            kinds=self._kinds.table,
            failing=lambda: {each.resource.kind: each.failing_for() for each in self._informers},
        )

    def _make_informers(self, options: Options, link: Link) -> list[Informer]:
        mine, pods = Where(options.namespace, selector(OPERATOR)), Where(options.namespace, ANY_OPERATOR)
        crds = (*self._jobs.values(), *self._scalers.values())
        watched: list[tuple[Fixed | Discovery, Where]] = [(one, Where(options.namespace)) for one in crds]
        # An earlier version's Role has no permission for some kinds.
        owned = [kinds.RESOURCES[kind] for kind in kinds.OWNED if kind in kinds.RESOURCES]
        watched += [(Fixed(one, optional=one.kind in kinds.OPTIONAL), mine) for one in owned]
        watched += [(one, mine) for one in self._groups.values()]
        watched += [(Fixed(kinds.RESOURCES[kinds.POD]), pods)]
        for kind, fields in ((kinds.EVENT, FAILED_CREATE_EVENTS), (kinds.EVICTION, EVICTION_EVENTS)):
            watched += [(Fixed(kinds.RESOURCES[kind]), Where(options.namespace, fields=fields))]
        watched += [(Fixed(kinds.RESOURCES[kinds.NODE], optional=True), Where())]
        return [
            Informer(link, source, where, self._store, self._log, changed=self._queue.add, chance=random.random)
            for source, where in watched
        ]

    def _make_reconciler(
        self, planners: Sequence[Planner], options: Options, link: Link, clock: Callable[[], datetime]
    ) -> Reconciler:
        served = {kind: one.now for kind, one in (self._jobs | self._scalers | self._groups).items()}
        cluster = Writer(link, kinds.RESOURCES, served, within=options.terms.write_within)
        access = Access(cluster, self._questions, self._log, self._metrics.acted)
        elector, made = self._elector, clock()
        heard = (lambda: made) if elector is None else (lambda: elector.heard_since)
        return Reconciler(planners, options.settings, self._store, access, Leader(clock, heard, self.leads))

    def _begin(self) -> None:
        """Start the workers when the caches are synced."""
        for informer in self._informers:
            while not informer.synced.wait(1.0) and self._kinds.holds_up(informer):
                if self._stopping.is_set():
                    return
        with self._begun:
            if self._stopping.is_set():
                return
            jobs, kinds_of_jobs = len(self._store.jobs()), ",".join(self._kinds.jobs())
            self._log.info("acting", jobs=jobs, kinds=kinds_of_jobs, workers=len(self._workers))
            for worker in self._workers:
                worker.start()

    def _work(self) -> None:
        name = threading.current_thread().name
        while (key := self._queue.take()) is not None:
            begun, used = time.monotonic(), time.thread_time()
            self._busy[name] = begun
            turn = self._look(key)
            del self._busy[name]
            self._metrics.looked(turn.result.name.lower(), time.monotonic() - begun)
            self._queue.settle(partial(_settle, key, turn, time.thread_time() - used))

    def _look(self, key: JobKey) -> Turn:
        if key.kind in kinds.WITH_BARE_WORKERS and not self._kinds.are_listed(kinds.SCALERS):
            # A scaler that is not listed yet would count as deleted, and what it has begun would be undone.
            return Turn(Result.SETTLED, datetime.now(UTC) + _UNTIL_LISTED)
        try:
            return self._reconciler.look(key)
        except Exception as error:  # noqa: BLE001  an internal error in one job must not stop the others
            report_mistake(self._log, error, job=str(key))
            return Turn(Result.FAILED)


def _discoveries(all_versions: Iterable[Sequence[Resource]], link: Link, log: Log) -> dict[str, Discovery]:
    """Return the kinds of our CRDs, each of which may be missing."""
    found = (Discovery(link, versions, log, remedy=APPLY, optional=True) for versions in all_versions)
    return {one.resource.kind: one for one in found}


def _groups(settings: Settings, link: Link, log: Log) -> dict[str, Discovery]:
    """Return the PodGroups of the gang scheduler, if there is one."""
    gang = settings.gang_scheduler
    return {} if gang is None else {kinds.POD_GROUP: Discovery(link, (gang.groups,), log, remedy=gang.remedy)}


def _settle(key: JobKey, turn: Turn, took: float, queue: Queue[JobKey]) -> None:
    now = time.monotonic()
    if turn.again is not None:
        queue.add_at(key, now + max(_SOONEST, (turn.again - datetime.now(UTC)).total_seconds()))
    match turn.result:
        case Result.SETTLED:
            queue.done(key, now, took=took)
        case Result.CHANGED:
            queue.changed(key, now)
        case Result.CUT_SHORT:
            queue.more(key)
        case Result.FAILED:
            queue.failed(key, now, at_least=turn.retry_after)
