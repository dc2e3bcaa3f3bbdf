"""
Lists the objects of one kind and watches them from then on.

Owns: when to list again and when to resume the watch where it ended, and the back-off after a failure. Objects go
to the store; only the last resourceVersion is kept here.

The kubernetes package's own SharedInformer was considered. It reconnects without a pause, sets no time limit on
silence, turns every object into a model, keeps it whole, and loses track of the resourceVersion where objects stay
dictionaries.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from http import HTTPStatus

from mpirt.backoff import Backoff
from mpirt.controller.cluster.discovery import BadAnswer, Discovery, Fixed, Forbidden, OtherVersion, Unserved
from mpirt.controller.cluster.link import Answer, Away, Link, Request, Stream, path
from mpirt.controller.model.reading import Body, decode, number, rows, table, text
from mpirt.controller.model.spec import JobKey
from mpirt.controller.monitoring.logs import Log
from mpirt.controller.observed.slim import slim
from mpirt.controller.observed.store import Store

# The server ends a watch after this time, varied by 20 %; the next one resumes from the last resourceVersion.
_WATCH_SECONDS = 300
# A bookmark arrives every minute. A connection that has been silent for longer may be half-open.
_SILENT = 100.0
_LIST_WITHIN = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
# The pauses between two looks for an optional kind, which may never be installed, or never be readable here.
# They soon become long: a cluster in peace is asked for next to nothing. A CRD is applied more often than a
# permission is granted; but an API server that has just begun refuses everything until it has read its roles.
_LOOKS_IF_UNSERVED = (1.0, 4.0, 16.0, 60.0)
_LOOKS_IF_FORBIDDEN = (1.0, 10.0, 300.0)
# Longer than one page of a list, a silent watch and a pause together: an informer without progress for so long is
# stuck.
_ALIVE_WITHIN = 240.0


@dataclass(frozen=True, slots=True)
class Where:
    """The selection to watch: without a namespace all of them, without labels and fields all objects."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


class Expired(Exception):
    """The API server no longer has the changes since the last resourceVersion (410 Gone)."""


class Informer:
    """A thread that lists and watches one kind."""

    def __init__(
        self,
        link: Link,
        source: Fixed | Discovery,
        where: Where,
        store: Store,
        log: Log,
        *,
        changed: Callable[[Collection[JobKey]], None],
        chance: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`changed` is called with the jobs that a change in the store concerns."""
        self.source = source
        self.resource = source.resource
        self.synced = threading.Event()
        self.problem = ""
        """Why the kind could not be listed or watched the last time; empty if it could."""
        self._link = link
        self._where = where
        self._store = store
        self._changed = changed
        self._log = log
        self._chance = chance
        self._clock = clock
        self._version = ""
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, chance)
        self._failures = 0
        self._looks = 0
        self._heard = self._clock()
        self._failing_since: float | None = None
        self._stopping = threading.Event()
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {self.resource.plural}", daemon=True)

    def start(self) -> None:
        """Start the thread: it delivers the list first, then the changes."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to stop."""
        self._stopping.set()
        stream = self._stream
        if stream is not None:
            stream.close()

    def join(self, within: float) -> None:
        """Wait for the thread to end. A request that hangs ends with the process."""
        self._thread.join(within)

    def is_alive(self) -> bool:
        """Whether the thread makes progress; retrying counts as progress."""
        return self._thread.is_alive() and self._clock() - self._heard < _ALIVE_WITHIN

    def failing_for(self) -> float:
        """Return for how many seconds the kind could be neither listed nor watched; 0 while a watch is open."""
        since = self._failing_since
        return 0.0 if since is None or self._stream is not None else self._clock() - since

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
            except Expired:
                self._version = ""
                # Ordinary after an interruption, and where nothing of the kind has changed for long.
                self._log.info("watch expired; listing again", kind=self.resource.kind)
                self._wait(Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, self._chance).next())
            except (Unserved, Forbidden) as error:
                self._version = ""
                if self.source.optional:
                    self._do_without(error)
                else:
                    self._pause(str(error), at_least=error.retry_after)
            except Away as error:
                self._pause(str(error))
            except BadAnswer as error:
                self._pause(str(error), at_least=error.retry_after)

    @property
    def is_missing(self) -> bool:
        """Whether this process does without the kind for now."""
        return self._looks > 0

    def _pause(self, why: str, *, at_least: float = 0.0) -> None:
        self._heard = self._clock()
        if self._stopping.is_set():
            return
        self.problem = why
        if self._failing_since is None:
            self._failing_since = self._heard
        if self._failures in (0, 5):
            self._log.warning("watch interrupted", kind=self.resource.kind, error=why)
        self._failures += 1
        self._wait(self._backoff.next(at_least or None))

    def _do_without(self, error: Unserved | Forbidden) -> None:
        """There are no objects of this kind until it is installed, or the permission to read it is granted."""
        self._changed(self._store.lose(self.resource.kind))
        if str(error) != self.problem or not self._looks:
            write = self._log.warning if isinstance(error, OtherVersion) else self._log.info
            write("doing without a kind", kind=self.resource.kind, error=str(error))
        self.problem = str(error)
        after = look_again(self._looks, self._chance(), error)
        self._looks += 1
        self._failing_since = None
        self.synced.set()
        self._wait(after)

    def _wait(self, seconds: float) -> None:
        """Wait, and stay alive for the liveness check, however long the API server asks to wait."""
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0 and not self._stopping.wait(min(left, _LONGEST_PAUSE)):
            self._heard = self._clock()

    def _well(self) -> None:
        self._heard = self._clock()
        self._looks, self.problem = 0, ""
        self._backoff.reset()
        if self._failures:
            self._failures = 0
            self._log.info("watch restored", kind=self.resource.kind)

    def _list(self) -> None:
        self.resource = self.source.find()
        version, pages, more = "", list[list[Body]](), ""
        while not version or more:
            metadata, items = self._page(more)
            # All pages of a list show the state at the first page's resourceVersion.
            version = version or text(metadata, "resourceVersion")
            more = text(metadata, "continue")
            pages.append(items)
            self._heard = self._clock()
            if not version:
                raise BadAnswer(f"the list of {self.resource.plural} has no resourceVersion")
        bodies = (body for page in pages for body in page)
        self._changed(self._store.replace(self.resource.kind, bodies, version))
        self._version = version
        self._failing_since = None
        self.synced.set()
        self._well()

    def _page(self, more: str) -> tuple[Body, list[Body]]:
        """
        Return the metadata of a page of the list, and what has to be kept of its objects.

        Whole objects take many times the memory, so those of a page are dropped before the next one is read.
        """
        query = self._query(limit=str(self.resource.page)) | ({"continue": more} if more else {})
        where = path(self.resource, self._where.namespace)
        answer = self._link.ask(
            Request("list", "GET", where, self.resource.plural, query=query, within=_LIST_WITHIN)
        )
        if not answer.is_good:
            raise _bad_answer(answer)
        said = answer.body
        items: list[Body] = [slim(self.resource.kind, body) for body in rows(said, "items")]
        return table(said, "metadata"), items

    def _watch(self) -> None:
        seconds = int(_WATCH_SECONDS * (0.8 + 0.4 * self._chance()))
        query = self._query(
            watch="1", allowWatchBookmarks="true", resourceVersion=self._version, timeoutSeconds=str(seconds)
        )
        where = path(self.resource, self._where.namespace)
        begun = self._clock()
        stream = self._link.watch(
            Request("watch", "GET", where, self.resource.plural, query=query, within=_SILENT)
        )
        if isinstance(stream, Answer):
            raise _bad_answer(stream)
        self._stream = stream
        try:
            if self._stopping.is_set():
                return
            self._well()
            self._read(stream.lines())
        except Away:
            # A silent watch is not a failure: without bookmarks, nothing arrives for a kind that does not change.
            if self._clock() - begun < _SILENT:
                raise
        finally:
            self._stream = None
            stream.close()
        if self._clock() - begun < 1:
            raise BadAnswer("the watch ended as soon as it started")
        self._failing_since = None

    def _read(self, lines: Iterator[bytes]) -> None:
        for line in lines:
            self._heard = self._clock()
            kind, body = _event(line)
            match kind:
                case "ADDED" | "MODIFIED":
                    self._changed(self._store.put(self.resource.kind, body))
                case "DELETED":
                    self._changed(self._store.remove(self.resource.kind, body))
                case "ERROR" if number(body, "code") == HTTPStatus.GONE:
                    raise Expired
                case "BOOKMARK":
                    pass
                case _:
                    raise BadAnswer(text(body, "message") or f"unknown watch event type {kind!r}")
            self._version = text(table(body, "metadata"), "resourceVersion") or self._version
            # An open watch that delivers nothing is no proof yet: it may end with the same error again.
            self._failing_since = None

    def _query(self, **words: str) -> dict[str, str]:
        chosen = {"labelSelector": self._where.labels, "fieldSelector": self._where.fields}
        return words | {name: each for name, each in chosen.items() if each}


def look_again(looks: int, chance: float, error: Unserved | Forbidden) -> float:
    """Return the seconds until an optional kind is looked for again, after so many looks."""
    pauses = _LOOKS_IF_FORBIDDEN if isinstance(error, Forbidden) else _LOOKS_IF_UNSERVED
    return pauses[min(looks, len(pauses) - 1)] * (0.5 + chance / 2)


def _bad_answer(answer: Answer) -> Exception:
    match answer.code:
        case HTTPStatus.GONE:
            return Expired()
        case HTTPStatus.NOT_FOUND:
            return Unserved(answer.message)
        case HTTPStatus.FORBIDDEN:
            return Forbidden(answer.message, answer.retry_after)
        case _:
            return BadAnswer(answer.message, answer.retry_after)


def _event(line: bytes) -> tuple[str, Body]:
    try:
        found = decode(line)
    except ValueError as error:
        raise BadAnswer(f"malformed watch event, not JSON: {line[:80]!r}") from error
    if not isinstance(found, dict):
        raise BadAnswer(f"malformed watch event, not an object: {line[:80]!r}")
    return text(found, "type"), table(found, "object")
