"""
One kind of object, listed once and watched from then on.

Owns: when to list again and when to go on from where the last watch ended, and how long to wait after a failure.
What is seen goes to a sink; nothing is kept here but the version that was seen last.

The package's own SharedInformer was looked at first. It reconnects without a pause, sets no time limit on silence,
turns every object into a model, keeps it whole, and loses its place where objects stay dictionaries.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

from mpirt.controller.cluster.discovery import BadAnswer, Unserved
from mpirt.controller.cluster.link import Answer, Away, Link, Request, Stream, path
from mpirt.controller.model.kinds import Resource
from mpirt.controller.model.reading import Body, number, rows, table, text
from mpirt.controller.monitoring.logs import Log

# The server ends a watch after this time, give or take; then one goes on from its last version.
_WATCH_SECONDS = 300
# A bookmark comes every minute. A connection that has been silent for longer may be half-open.
_SILENT = 100.0
_LIST_WITHIN = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
# Longer than a list, a silence and a pause together: a thread that did nothing for so long hangs.
_ALIVE_WITHIN = 240.0


class Sink(Protocol):
    """Where objects go."""

    def needed(self, kind: str, body: Body) -> Body:
        """What has to be kept of an object until all there are have been listed."""

    def replaced(self, kind: str, bodies: Iterable[Body], version: str) -> None:
        """All there are, as of a version; of each what is needed."""

    def changed(self, kind: str, body: Body) -> None:
        """Made or changed."""

    def removed(self, kind: str, body: Body) -> None:
        """No more."""


@dataclass(frozen=True, slots=True)
class Where:
    """What is watched: all namespaces if none is named, all objects if neither labels nor fields are."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


class Source(Protocol):
    """What is watched: a resource, of which the version may change."""

    @property
    def resource(self) -> Resource:
        """As it was found last."""
        ...

    def find(self) -> Resource:
        """As it is served now. Raises BadAnswer or Away."""


class Expired(Exception):
    """What came after the version that was seen last isn't known any more."""


class Informer:
    """A thread that watches a kind."""

    def __init__(
        self, link: Link, source: Source, where: Where, sink: Sink, log: Log, *, chance: Callable[[], float]
    ) -> None:
        self.source = source
        self.resource = source.resource
        self.synced = threading.Event()
        self._link = link
        self._where = where
        self._sink = sink
        self._log = log
        self._chance = chance
        self._version = ""
        self._failures = 0
        self._heard = time.monotonic()
        self._stopping = threading.Event()
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {self.resource.plural}", daemon=True)

    def start(self) -> None:
        """Begin. The objects come, then the changes."""
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end."""
        self._stopping.set()
        stream = self._stream
        if stream is not None:
            stream.close()

    def join(self, within: float) -> None:
        """Wait for the end. A request that hangs is left to the end of the process."""
        self._thread.join(within)

    def is_alive(self) -> bool:
        """Whether it still does something, if only trying."""
        return self._thread.is_alive() and time.monotonic() - self._heard < _ALIVE_WITHIN

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
            except Expired:
                self._version = ""
                self._pause("the resourceVersion has expired; listing again")
            except Unserved as error:
                self._version = ""
                self._pause(str(error))
            except Away as error:
                self._pause(str(error))
            except BadAnswer as error:
                self._pause(str(error), at_least=error.retry_after)

    def _pause(self, why: str, *, at_least: float = 0.0) -> None:
        self._heard = time.monotonic()
        if self._stopping.is_set():
            return
        if self._failures in (0, 5):
            self._log.warning("watch interrupted", kind=self.resource.kind, error=why)
        self._failures += 1
        self._wait(pause(self._failures, self._chance(), at_least))

    def _wait(self, seconds: float) -> None:
        """Wait, and count as alive meanwhile, however long the API server asks to wait."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._stopping.wait(min(left, _LONGEST_PAUSE)):
            self._heard = time.monotonic()

    def _well(self) -> None:
        self._heard = time.monotonic()
        if self._failures:
            self._failures = 0
            self._log.info("watch restored", kind=self.resource.kind)

    def _list(self) -> None:
        self.resource = self.source.find()
        version, pages, more = "", list[list[Body]](), ""
        while not version or more:
            said = self._page(more)
            metadata = table(said, "metadata")
            # Of a list in several pages the first one's version counts: all are as of that moment.
            version = version or text(metadata, "resourceVersion")
            more = text(metadata, "continue")
            # Whole objects of all pages together are many times what is kept of them in the end.
            pages.append([self._sink.needed(self.resource.kind, body) for body in rows(said, "items")])
            if not version:
                raise BadAnswer(f"the list of {self.resource.plural} has no resourceVersion")
        self._sink.replaced(self.resource.kind, (body for page in pages for body in page), version)
        self._version = version
        self.synced.set()
        self._well()

    def _page(self, more: str) -> Body:
        query = self._query(limit=str(self.resource.page)) | ({"continue": more} if more else {})
        where = path(self.resource, self._where.namespace)
        answer = self._link.ask(
            Request("list", "GET", where, self.resource.plural, query=query, within=_LIST_WITHIN)
        )
        return _good(answer).body

    def _watch(self) -> None:
        seconds = int(_WATCH_SECONDS * (0.8 + 0.4 * self._chance()))
        query = self._query(
            watch="1", allowWatchBookmarks="true", resourceVersion=self._version, timeoutSeconds=str(seconds)
        )
        where = path(self.resource, self._where.namespace)
        begun = time.monotonic()
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
            # Silence is no failure: without bookmarks a quiet kind is silent.
            if time.monotonic() - begun < _SILENT:
                raise
        finally:
            self._stream = None
            stream.close()
        if time.monotonic() - begun < 1:
            raise BadAnswer("the watch ended as soon as it started")

    def _read(self, lines: Iterator[bytes]) -> None:
        for line in lines:
            self._heard = time.monotonic()
            kind, body = _event(line)
            match kind:
                case "ADDED" | "MODIFIED":
                    self._sink.changed(self.resource.kind, body)
                case "DELETED":
                    self._sink.removed(self.resource.kind, body)
                case "ERROR" if number(body, "code") == HTTPStatus.GONE:
                    raise Expired
                case "BOOKMARK":
                    pass
                case _:
                    raise BadAnswer(text(body, "message") or f"unknown watch event type {kind!r}")
            self._version = text(table(body, "metadata"), "resourceVersion") or self._version

    def _query(self, **words: str) -> dict[str, str]:
        chosen = {"labelSelector": self._where.labels, "fieldSelector": self._where.fields}
        return words | {name: each for name, each in chosen.items() if each}


def pause(failures: int, chance: float, at_least: float) -> float:
    """Seconds before the next attempt, after so many failures. Informers that fail together come back spread."""
    longest: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(failures, 32))
    return max(longest * (0.5 + chance / 2), at_least * (1 + chance / 5))


def _good(answer: Answer) -> Answer:
    if not answer.is_good:
        raise _bad_answer(answer)
    return answer


def _bad_answer(answer: Answer) -> Exception:
    match answer.code:
        case HTTPStatus.GONE:
            return Expired()
        case HTTPStatus.NOT_FOUND:
            return Unserved(answer.message)
        case _:
            return BadAnswer(answer.message, answer.retry_after)


def _event(line: bytes) -> tuple[str, Body]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise BadAnswer(f"malformed watch event, not JSON: {line[:80]!r}") from error
    if not isinstance(found, dict):
        raise BadAnswer(f"malformed watch event, not an object: {line[:80]!r}")
    return text(found, "type"), table(found, "object")
