"""
The loopback API server: accepts, authenticates, authorises, and answers with the truth or with scripted faults.

Owns: what its threads do (one per connection), the script of faults, and the record of what was asked.
start() and stop() frame its life; stop() leaves no thread, no process and no socket behind.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import ssl
import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tests.apiserver import channel as exec_channel
from tests.apiserver import kubeconfig, routes
from tests.apiserver.certificates import HOST, Authority
from tests.apiserver.connection import Connection, Exchange, Gone, Request
from tests.apiserver.door import DoorFault, Visitor
from tests.apiserver.faults import Fault, Status
from tests.apiserver.listener import PATIENCE, Listener
from tests.apiserver.peer import Peer
from tests.apiserver.processes import kill_all
from tests.apiserver.routes import Operation
from tests.apiserver.shell import Session, Shell
from tests.apiserver.world import World


@dataclass(frozen=True)
class Honest:
    """The truth, where a script needs it between faults."""


@dataclass(frozen=True)
class Gated:
    """Nothing until the test opens the gate; then the next step."""

    gate: threading.Event
    step: Action = Honest()


Action: TypeAlias = "Fault | Honest | Peer | Shell"
Step: TypeAlias = "Action | Gated"


class ApiServer:
    """One server. Its attributes are settings that may be changed at any time."""

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.world = World()
        self.token = "a-token-that-nobody-may-see"
        self.rules = routes.EVERYTHING
        """Verb and resource: what the Role of the token's account holds."""
        self.identity: ssl.SSLContext = authority.good
        self.base_path = ""
        self.protocols: tuple[str, ...] = (exec_channel.V5, exec_channel.V4)
        self.requests: list[tuple[str, Request]] = []
        """Operation and request, in the order they came."""
        self.sessions: list[Session] = []
        self.complaints: list[str] = []
        """What a client did that it must not."""
        self.connections = 0
        self.client_names: list[str] = []
        """Of the connections that showed a certificate: its common name."""
        self._steps: dict[str, deque[Step]] = defaultdict(deque)
        self._always: dict[str, Step] = {}
        self._door: deque[DoorFault] = deque()
        self._changed = threading.Condition()
        self._open: set[Connection] = set()
        self._channels: list[exec_channel.Channel] = []
        self._listener = Listener("apiserver")
        self._mark = secrets.token_hex(8)

    # -- what a test says --------------------------------------------------------------------------------------

    def on(self, operation: str, *steps: Step) -> None:
        """Let the next requests of an operation (get, list, watch, exec) go so, one after the other."""
        with self._changed:
            self._steps[operation].extend(steps)

    def always(self, operation: str, step: Step) -> None:
        """Let every request of an operation go so, once the steps of on() are used up."""
        with self._changed:
            self._always[operation] = step

    def at_the_door(self, *faults: DoorFault) -> None:
        """Let the next connections go so, before TLS."""
        with self._changed:
            self._door.extend(faults)

    # -- what a test asks --------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        return self._listener.port

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}{self.base_path}"

    def asked(self, operation: str) -> list[Request]:
        """The requests of an operation so far."""
        with self._changed:
            return [request for name, request in self.requests if name == operation]

    def wait_for(self, operation: str, count: int = 1) -> Request:
        """Wait until an operation was asked for so many times; the last of these requests."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._count(operation) >= count, PATIENCE), (
                f"{operation} was asked for {self._count(operation)} times, not {count}"
            )
        return self.asked(operation)[count - 1]

    def wait_for_session(self, count: int = 1) -> Session:
        """Wait until so many execs run a process; the last of them."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.sessions) >= count, PATIENCE), "no exec has come"
            return self.sessions[count - 1]

    def kubeconfig(self, folder: Path, **user: Any) -> Path:
        """Write a kubeconfig for this server; `user` instead of the token."""
        return kubeconfig.write(folder, self.url, user or {"token": self.token}, ca=self.authority.ca)

    def service_account(self, folder: Path) -> dict[str, str]:
        """Write the files of a pod's service account; the environment that goes with them."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ca.crt").write_text(self.authority.ca, encoding="utf-8")
        (folder / "token").write_text(self.token, encoding="utf-8")
        (folder / "namespace").write_text("ml", encoding="utf-8")
        return {"KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT_HTTPS": str(self.port)}

    # -- its life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._listener.start(self._accepted)

    def stop(self) -> None:
        """End everything, whatever state it is in. The second time nothing is left to do."""
        if self._listener.stopping.is_set():
            return
        self._listener.close()
        self.world.stop()
        with self._changed:
            is_open, sessions = list(self._open), list(self.sessions)
        for connection in is_open:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(connection.socket, socket.SHUT_RDWR)
        self._kill(sessions)
        self._listener.join()
        for session in self.sessions:
            session.release()
        for channel in self._channels:
            self.complaints += channel.complaints

    def _accepted(self, sock: socket.socket) -> None:
        with self._changed:
            self.connections += 1
            fault = self._door.popleft() if self._door else None
        self._listener.begin(self._welcome, sock, fault)

    def _welcome(self, sock: socket.socket, fault: DoorFault | None) -> None:
        with sock:
            if fault is not None:
                fault.meet(Visitor(sock, self._listener.stopping))
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(PATIENCE)
            try:
                wrapped = self.identity.wrap_socket(sock, server_side=True)
            except OSError:
                return
            wrapped.settimeout(None)
            connection = Connection(wrapped, self._listener.stopping)
            with self._changed:
                self._open.add(connection)
                self.client_names += [connection.client_name] if connection.client_name else []
            try:
                self._serve(connection)
            finally:
                with self._changed:
                    self._open.discard(connection)
                wrapped.close()

    def _serve(self, connection: Connection) -> None:
        with contextlib.suppress(Gone):
            while not connection.closed and not self._listener.stopping.is_set():
                self._handle(Exchange(connection, connection.receive_request()))

    # -- one request -------------------------------------------------------------------------------------------

    def _handle(self, exchange: Exchange) -> None:
        request = exchange.request
        wanted = routes.operation(request, self.base_path)
        name = wanted.name if wanted else "other"
        with self._changed:
            self.requests.append((name, request))
            self._changed.notify_all()
            step = self._steps[name].popleft() if self._steps[name] else self._always.get(name)
        if isinstance(step, Gated):
            assert step.gate.wait(PATIENCE), "the gate was not opened"
            step = step.step
        if step is not None and not isinstance(step, Honest | Peer | Shell):
            step.play(exchange)
            return
        refusal = self._refusal(exchange, wanted)
        if refusal is not None or wanted is None:
            (refusal or Status(404, "NotFound", "nothing lives here")).play(exchange)
        elif wanted.name == "exec":
            self._exec(exchange, wanted, step if isinstance(step, Peer | Shell) else Shell())
        elif wanted.name == "watch":
            routes.watch(wanted, exchange, self.world)
        elif (answer := routes.truth(wanted, request, self.world)) is not None:
            answer.play(exchange)

    def _refusal(self, exchange: Exchange, wanted: Operation | None) -> Status | None:
        if wanted is None:
            return None
        token = exchange.request.headers.get("authorization")
        knows = token == f"Bearer {self.token}" or exchange.connection.client_name
        return routes.refusal(wanted, self.rules) if knows else Status(401, "Unauthorized", "Unauthorized")

    def _exec(self, exchange: Exchange, wanted: Operation, player: Peer | Shell) -> None:
        if self.world.get(wanted.namespace, wanted.pod) is None:
            Status(404, "NotFound", f'pods "{wanted.pod}" not found').play(exchange)
            return
        if exchange.request.headers.get("upgrade", "").lower() != "websocket":
            Status(400, "BadRequest", "Upgrade request required").play(exchange)
            return
        if exchange.request.headers.get("accept", "*/*") != "*/*":
            Status(406, "NotAcceptable", "only the following media types are accepted: */*").play(exchange)
            return
        channel = exec_channel.accept(exchange, self.protocols)
        if channel is None:
            return
        self._channels.append(channel)
        if isinstance(player, Peer):
            player.play(channel)
            exchange.connection.close()
            return
        session = player.serve(channel, self._mark)
        with self._changed:
            self.sessions.append(session)
            self._changed.notify_all()
        if self._listener.stopping.is_set():
            self._kill([session])
        session.run()

    def _kill(self, sessions: Sequence[Session]) -> None:
        """Leave nothing of them behind, keepers and what these hold neither."""
        if sessions:
            kill_all({session.pid for session in sessions}, self._mark)

    def _count(self, operation: str) -> int:
        return sum(1 for name, _ in self.requests if name == operation)
