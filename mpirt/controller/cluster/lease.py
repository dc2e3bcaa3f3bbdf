"""
Takes the Lease and renews it.

Owns: reading and writing it in time. election.py decides what to write. The kubernetes package's own leader
election was considered: it can't be stopped or release the lease, ends with an exception when the API server is
unreachable, and goes on writing until its renewal has failed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from mpirt.controller.cluster import election
from mpirt.controller.cluster.election import Seen, Terms
from mpirt.controller.cluster.link import Answer, Away, Link, Request, path
from mpirt.controller.model.actions import CONFLICT, NOT_FOUND
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.reading import Body
from mpirt.controller.monitoring.logs import Log, report_mistake

_LEASES = Resource("coordination.k8s.io/v1", "Lease", "leases")


class Elector:
    """
    A thread that takes the Lease when it is free and renews it from then on.

    `leads` is true while this process may write. Once it was true and no longer is, the process has to exit.

    `heard_since` is the time since which every request was answered, an error other than a conflict counting as no
    answer. It starts when the elector is created. No other thread sends requests as often, whether this process
    leads or waits.
    """

    def __init__(self, link: Link, namespace: str, name: str, identity: str, log: Log, *, terms: Terms) -> None:
        self._link = link
        self._where = (namespace, name)
        self._identity = identity
        self._log = log
        self._terms = terms
        self._until = float("-inf")
        self._seen: Seen | None = None
        self._body: Body = {}
        self.heard_since = datetime.now(UTC)
        self._trouble = ""
        self._unanswered = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def leads(self) -> bool:
        """Whether this process may write now."""
        return _now() < self._until

    def is_alive(self) -> bool:
        """Whether the thread runs, if it was started: without it the Lease is never renewed, nor given up."""
        return self._thread is None or self._thread.is_alive()

    def start(self, *, gained: Callable[[], None], lost: Callable[[], None]) -> None:
        """Start the thread, which calls `gained` and `lost`, each at most once."""
        self._thread = threading.Thread(target=self._run, args=(gained, lost), name="lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing, and release the Lease if it is held. By then nothing may write any more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(self._terms.deadline)
        if self.leads():
            self._until = float("-inf")
            self._give_back()

    def _run(self, gained: Callable[[], None], lost: Callable[[], None]) -> None:
        led = False
        while not self._stopping.is_set():
            self._turn()
            if self.leads() and not led:
                led = True
                self._log.info("leading", lease="/".join(self._where), identity=self._identity)
                gained()
            if led and not self.leads():
                self._log.error("lease lost", lease="/".join(self._where), error=self._trouble)
                lost()
                return
            self._stopping.wait(self._pause())

    def _pause(self) -> float:
        left = self._until - _now()
        if left <= 0:
            return self._terms.retry
        if not self._trouble:
            return self._terms.renewal
        # The last renewal failed: retry more often, and don't sleep past the deadline.
        return min(self._terms.retry / 4, left)

    def _turn(self) -> None:
        begun, before = _now(), self._trouble
        self._trouble = ""
        try:
            if self._try(begun):
                self._until = begun + self._terms.deadline
        except Away as error:
            self._note(str(error))
        except Exception as error:  # noqa: BLE001  not renewed, and given up at the deadline like any other lease
            self._note(f"{type(error).__name__}: {error}")
            if self._trouble != before:
                report_mistake(self._log, error, lease="/".join(self._where))
        if self._trouble not in ("", before):
            self._log.warning("lease not renewed", lease="/".join(self._where), error=self._trouble)

    def _try(self, now: float) -> bool:
        # The holder knows the resourceVersion and need not read the Lease first.
        if not self.leads() or not self._body:
            answer = self._ask("get", "GET")
            if answer.code == NOT_FOUND:
                return self._create()
            if not answer.is_good:
                self._note(answer.message)
                return False
            if not self._look(answer.body, now):
                return False
        lease = self._seen
        if lease is not None and lease.holder not in ("", self._identity):
            # Another replica is the holder, by whatever write: it may write from now on.
            self._until = float("-inf")
        if lease is None or not election.is_free(lease, self._identity, now):
            return False
        body = election.held(self._body, self._identity, self._terms, datetime.now(UTC))
        return self._took(self._ask("update", "PUT", body), now)

    def _create(self) -> bool:
        namespace, name = self._where
        body = election.fresh(name, namespace, self._identity, self._terms, datetime.now(UTC))
        return self._took(self._ask("create", "POST", body, path(_LEASES, namespace)), _now())

    def _took(self, answer: Answer, now: float) -> bool:
        if answer.is_good and self._look(answer.body, now):
            return self._is_mine()
        # Another replica was faster, or the Lease was edited: read it before the next attempt.
        self._body = {}
        if not answer.is_good and answer.code != CONFLICT:
            self._note(answer.message)
        return False

    def _is_mine(self) -> bool:
        """Whether the Lease that was written names this process as its holder."""
        is_mine = self._seen is not None and self._seen.holder == self._identity
        if not is_mine:
            self._body = {}
            self._note("the answer is not the Lease that was written")
        return is_mine

    def _look(self, body: Body, now: float) -> bool:
        """Remember the Lease in an answer. Return whether there is one."""
        if not election.is_lease(body):
            self._note("the answer is not the Lease")
            return False
        if self._unanswered:
            self._unanswered, self.heard_since = False, datetime.now(UTC)
        self._body = body
        self._seen = election.seen(body, self._seen, now, self._terms)
        return True

    def _give_back(self) -> None:
        try:
            self._ask("update", "PUT", election.released(self._body, datetime.now(UTC)))
            self._log.info("lease released", lease="/".join(self._where))
        except Exception as error:  # noqa: BLE001  the process ends, and the Lease with its duration
            self._log.warning("lease not released", error=str(error))

    def _ask(self, verb: str, method: str, body: Body | None = None, where: str = "") -> Answer:
        where = where or path(_LEASES, *self._where)
        return self._link.ask(Request(verb, method, where, _LEASES.plural, body=body, within=self._terms.retry))

    def _note(self, trouble: str) -> None:
        self._trouble, self._unanswered = trouble, True


def _now() -> float:
    """Return seconds by a clock that also counts suspend, where there is one: other replicas' clocks go on."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
