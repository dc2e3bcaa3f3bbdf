"""
The connection of a watch, for somebody else's poll loop: nothing here ever waits.

Owns: one TlsStream at a time, and moving bytes between it and a PodWatch. Who owns the loop polls fileno() for
`wants`, for at most timeout() seconds, and then calls step().
"""

from __future__ import annotations

from mpirt.errors import MpirtError
from mpirt.kubeapi.answers import Unauthorized
from mpirt.kubeapi.credentials import Credentials
from mpirt.kubeapi.deadline import Deadline
from mpirt.kubeapi.dial import Dialer
from mpirt.kubeapi.stream import TlsStream
from mpirt.kubeapi.watch import News, PodWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpirt.kubeapi.deadline import Clock

# Addresses are known by now, and tokens are in files: only a name that has to be looked up again, or a credential
# plugin, takes any time, and the session that shares the loop can spare this much.
_LOOK_UP_SECONDS = 1.0
# How much to read before the rest of the loop gets its turn.
_READS_PER_STEP = 16


class WatchLink:
    """A PodWatch on the wire."""

    __slots__ = ("_clock", "_dialer", "_more", "_request", "_stream", "_turn", "_watch")

    def __init__(self, dialer: Dialer, watch: PodWatch, *, clock: Clock) -> None:
        self._dialer = dialer
        self._watch = watch
        self._clock = clock
        self._stream: TlsStream | None = None
        self._request = b""
        self._turn = 0
        self._more = False

    def fileno(self) -> int:
        """The descriptor to poll; -1 while there is none. It changes from connection to connection."""
        return -1 if self._stream is None else self._stream.fileno()

    @property
    def wants(self) -> int:
        """What to poll the descriptor for."""
        return 0 if self._stream is None else self._stream.wants

    def timeout(self) -> float:
        """In how many seconds step() must be called, ready or not."""
        watch = self._watch
        if self._more:
            return 0.0
        moment = watch.expires if watch.expires is not None else watch.due
        return max(0.0, moment - self._clock())

    def step(self) -> list[News]:
        """Do what can be done without waiting; give what was learned."""
        now = self._clock()
        news = self._watch.tick(now)
        try:
            if not self._watch.asking:
                self._between(now)
            if self._watch.asking:
                news += self._listen(now)
        except MpirtError as error:
            if self._stream is None or not self._stream.opened:
                # Another address the next time, and names, authorities and certificates looked up anew.
                self._turn += 1
                self._dialer.forget()
            self.drop()
            news += self._watch.failed(error, now)
        for piece in news:
            if isinstance(piece.error, Unauthorized):
                self._dialer.endpoint.source.renew()
        if not self._watch.asking and not self._watch.reusable:
            self.drop()
        return news

    def look(self, *, anew: bool) -> None:
        """
        Learn of the pod at once: call it when something looks wrong.

        With `anew` on a new connection; else this one is trusted, and what it has on its way to us comes.
        """
        if anew:
            self._watch.look(self._clock())
        else:
            self._watch.hurry(self._clock())
        if not self._watch.reusable:
            self.drop()

    def drop(self) -> None:
        """Close the connection. The next step() opens another when it is time to ask."""
        # Of a connection that ended in the middle of a read there is no more; who believes so never sleeps.
        self._more = False
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _between(self, now: float) -> None:
        """Nothing is being asked: notice a connection that ends meanwhile, and begin to ask when it is time."""
        if self._stream is not None and (not self._stream.opened or self._stream.read() is not None):
            self.drop()
        if now < self._watch.due:
            return
        deadline = Deadline(_LOOK_UP_SECONDS, clock=self._clock)
        credentials = self._dialer.credentials(deadline)
        self._request = self._dialer.request(self._watch.ask(now).target, credentials)
        if self._stream is None:
            self._connect(deadline, credentials)

    def _connect(self, deadline: Deadline, credentials: Credentials) -> None:
        addresses = self._dialer.addresses(deadline)
        self._stream = self._dialer.begin(addresses[self._turn % len(addresses)], credentials)

    def _listen(self, now: float) -> list[News]:
        stream = self._stream
        if stream is None or not stream.advance():
            return []
        if self._request:
            stream.write(self._request)
            self._request = b""
        stream.flush()
        news: list[News] = []
        self._more = True
        for _ in range(_READS_PER_STEP):
            data = stream.read()
            if data:
                news += self._watch.receive(data, now)
            elif data is not None:
                news += self._watch.eof(now)
                self.drop()
            if not data or not self._watch.asking:
                self._more = False
                break
        return news
