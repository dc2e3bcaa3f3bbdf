"""
The connection of a watch, for a poll loop: nothing here ever waits.

Owns: one question at a time, and moving bytes between its connection and a PodWatch. The owner of the loop polls
as waits() says, and then calls step().
"""

from __future__ import annotations

from mpirt.errors import MpirtError
from mpirt.kubeapi.access.credentials import Credentials
from mpirt.kubeapi.access.steps import Clock, Deadline, Pending, Steps, Wait
from mpirt.kubeapi.request.answers import NOT_ACCEPTED
from mpirt.kubeapi.request.dial import Dialer, Kept
from mpirt.kubeapi.request.stream import TlsStream
from mpirt.kubeapi.watch.listwatch import PodWatch
from mpirt.kubeapi.watch.news import News

# Credentials of files are there at once; this is for a credential plugin.
_CREDENTIALS_SECONDS = 60.0
# How much to read before the rest of the loop gets its turn.
_READS_PER_STEP = 16


class WatchLink:
    """A PodWatch on the wire."""

    __slots__ = ("_clock", "_credentials", "_dialer", "_is_relied_on", "_kept", "_news", "_question", "_watch")

    def __init__(self, dialer: Dialer, watch: PodWatch, *, clock: Clock, is_relied_on: bool = False) -> None:
        """`is_relied_on`: no news count as no change, so a connection that is dead must show soon."""
        self._dialer = dialer
        self._is_relied_on = is_relied_on
        self._watch = watch
        self._clock = clock
        self._kept = Kept()
        self._credentials: Credentials | None = None
        self._question: Pending[None] | None = None
        self._news: list[News] = []

    @property
    def version(self) -> str:
        """The resource version up to which everything was reported; empty if unknown."""
        return self._watch.version

    @property
    def opened_at(self) -> float | None:
        """Since when a watch is open; None while there is none."""
        return self._watch.opened_at

    @property
    def heard_at(self) -> float:
        """When the last bytes have come."""
        return self._watch.heard_at

    @property
    def has_more(self) -> bool:
        """Whether there may be more to read than the last step() has read."""
        return self._question is not None and self._question.waits()[2] <= 0

    def waits(self) -> tuple[int, int, float]:
        """What to poll, -1 for nothing; for what; and in how many seconds to call step(), ready or not."""
        interrupt = self._watch.interrupt
        if self._question is None:
            fd, wants, left = -1, 0, self._watch.due - self._clock()
        else:
            fd, wants, left = self._question.waits()
        return fd, wants, max(0.0, left if interrupt is None else min(left, interrupt - self._clock()))

    def step(self) -> list[News]:
        """Do what can be done without waiting; give what was learned."""
        now = self._clock()
        was_asking = self._watch.asking
        self._news = self._watch.tick(now)
        self._follow(was_asking=was_asking)
        try:
            if self._question is None and now >= self._watch.due:
                self._question = Pending(self._ask())
            if self._question is not None and self._question.advance():
                self._question = None
        except MpirtError as error:
            self._question = None
            self._news += self._watch.failed(error, now)
        for piece in self._news:
            if isinstance(piece.error, NOT_ACCEPTED) and self._credentials is not None:
                self._dialer.endpoint.source.renew(self._credentials)
        return self._news

    def look(self, *, anew: bool) -> None:
        """
        Learn of the pod at once: call it when something looks wrong.

        With `anew` on a new connection; else this one is trusted, and what it has on its way to us comes.
        """
        was_asking = self._watch.asking
        if not anew:
            self._watch.hurry(self._clock())
            return
        self._watch.look(self._clock())
        self._follow(was_asking=was_asking)

    def list_next(self) -> None:
        """Ask for all of it next, not for what has changed since then."""
        self._watch.version = ""

    def drop(self) -> None:
        """Close the connection. The next step() opens another when it is time to ask."""
        self._kept.close()
        if self._question is not None:
            self._question.close()
            self._question = None

    def _follow(self, *, was_asking: bool) -> None:
        """Keep no connection that the watch has given up."""
        if not self._watch.asking and not self._watch.reusable:
            self._kept.close()
            if was_asking:
                self.drop()

    def _ask(self) -> Steps[None]:
        watch, dialer = self._watch, self._dialer
        credentials = yield from dialer.credentials(Deadline(_CREDENTIALS_SECONDS, clock=self._clock))
        self._credentials = credentials
        request = dialer.request(watch.ask(self._clock()).target, credentials)
        stream = self._kept.take(credentials)
        if stream is None:
            stream = yield from dialer.open(self._patience(), credentials)
        try:
            if self._is_relied_on:
                stream.guard_closely()
            stream.write(request)
            yield from self._listen(stream)
        except BaseException:
            stream.close()
            raise
        if watch.reusable:
            self._kept.put(stream, credentials)
        else:
            stream.close()

    def _listen(self, stream: TlsStream) -> Steps[None]:
        """Read until the question is answered. The watch itself says when that takes too long."""
        reads = 0
        while self._watch.asking:
            data, reads = stream.read(), reads + 1
            if data:
                self._news += self._watch.receive(data, self._clock())
            elif data is not None:
                self._news += self._watch.eof(self._clock())
            else:
                yield Wait(*stream.to_poll, self._patience())
                stream.flush()
                reads = 0
            if reads == _READS_PER_STEP:
                yield Wait(*stream.to_poll, Deadline(0.0, clock=self._clock))
                reads = 0

    def _patience(self) -> Deadline:
        left = 0.0 if self._watch.expires is None else self._watch.expires - self._clock()
        return Deadline(max(0.0, left), clock=self._clock)
