"""
The switchboard's process: started by an agent, with a socket as descriptor 3.

Owns: putting the parts together, and the end. The socket of a shared one listens, and what goes wrong is in the
file that an agent has made stderr. That of a private one is connected to its agent, with which it ends. The
program is mpirt/cli/switchboard.py, which hands in what answers mpirt-discover.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
import time
import traceback
from collections.abc import Hashable, Sequence
from contextlib import suppress
from pathlib import Path

from mpirt import names
from mpirt.errors import ExitCode, internal_error
from mpirt.rsh.invocation.options import version
from mpirt.rsh.ports.loop import Loop
from mpirt.rsh.switchboard.agentlink import AgentLink
from mpirt.rsh.switchboard.calls import Calls
from mpirt.rsh.switchboard.discovery import Discovery
from mpirt.rsh.switchboard.door import IDLE_SECONDS, Door
from mpirt.rsh.switchboard.frames import Handover, Kind
from mpirt.rsh.switchboard.outbox import Budget
from mpirt.rsh.switchboard.status import QUEUED, BoardStatus, CommandStatus, WatchStatus, document

_SOCKET = 3
# A thousand sessions that each wake up once in a while are a thousand waits less so.
_GRAIN = 0.05
# What the process itself needs, and each command: its agent, its exec, and a watch where each pod has its own.
_OWN_DESCRIPTORS = 24
_DESCRIPTORS_EACH = 3
# Agents beyond that, who are told to go on without us.
_TURNED_AWAY_AT_ONCE = 8


def main(discovery: Discovery, *, idle_seconds: float = IDLE_SECONDS) -> int:
    """Serve agents until there have been none for a while; or one, if MPIRT_SWITCHBOARD is off."""
    place = os.environ.get(names.SWITCHBOARD_VARIABLE, "")
    try:
        given = socket.socket(fileno=_SOCKET)
    except OSError:
        place = ""
    if not place:
        sys.stderr.write("mpirt-switchboard: agents of mpirt-rsh start it, with a socket; people don't\n")
        return 2
    if place == "off":
        serve_one(given)
    else:
        _prepare()
        Switchboard(discovery).serve_all(given, Path(place), idle_seconds=idle_seconds)
    return 0


def serve_one(connection: socket.socket) -> None:
    """Be the private switchboard of the agent at the other end."""
    _prepare()
    board = Switchboard()
    # A program that reads the agent's stderr to its end waits for the agent, not for this process.
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(_SOCKET):
        os.dup2(null, fd)
    board.serve_one(connection)


def _prepare() -> None:
    """Keep no folder busy, write what others can't read, and hold as many descriptors as this user may."""
    os.chdir("/")
    os.umask(0o077)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class Switchboard:
    """The agents, their commands, and the loop that has them all."""

    def __init__(self, discovery: Discovery | None = None) -> None:
        """A private one, which has no `discovery`, answers its agent only, and keeps no account."""
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._loop = Loop(self._failed, grain=_GRAIN)
        self._calls = Calls(self._loop, discovery)
        self._most = max(1, (limit - _OWN_DESCRIPTORS - _TURNED_AWAY_AT_ONCE) // _DESCRIPTORS_EACH)
        self._budget = Budget()
        self._started = time.time()
        # Clients that have connected and said nothing yet; agents; and viewers, which keep no switchboard alive.
        self._newcomers: set[AgentLink] = set()
        self._agents: set[AgentLink] = set()
        self._viewers: set[AgentLink] = set()
        self._door: Door | None = None

    def serve_one(self, connection: socket.socket) -> None:
        """Until this agent has left, and its command has ended."""
        self._let_in(connection)
        while self._newcomers or self._agents or self._calls:
            self._loop.turn()

    def serve_all(self, listener: socket.socket, folder: Path, *, idle_seconds: float) -> None:
        """Until the door is closed and all agents have left."""
        self._door = door = Door(
            listener,
            folder,
            let_in=self._let_in,
            is_full=self._is_full,
            count=self._count,
            idle_seconds=idle_seconds,
        )
        self._loop.add(door, door.act, group=door)
        before = None
        while not door.is_closed or self._newcomers or self._agents or self._calls:
            self._loop.turn()
            self._calls.settle_if_heard()
            # Turns come by the thousand while output flows; few of them change anything for the door.
            if (present := (self._count(), self._is_full())) != before:
                before = present
                door.look()
                self._loop.touch(door)

    def _count(self) -> int:
        return len(self._agents) + len(self._calls)

    def _is_full(self) -> bool:
        connected = len(self._newcomers) + len(self._agents) + len(self._viewers)
        return connected >= self._most + _TURNED_AWAY_AT_ONCE

    def _let_in(self, connection: socket.socket) -> None:
        newcomer = AgentLink(
            self._loop,
            connection,
            budget=self._budget,
            handed_over=self._handed_over,
            signalled_early=self._calls.signalled_early,
            asked=self._asked,
            has_ended=self._has_ended,
        )
        # One that was killed meanwhile is gone before it is known.
        if not newcomer.is_gone:
            self._newcomers.add(newcomer)

    def _handed_over(self, agent: AgentLink, handover: Handover) -> None:
        self._newcomers.discard(agent)
        self._agents.add(agent)
        self._calls.take(agent, handover, is_one_too_many=len(self._calls) >= self._most)

    def _asked(self, viewer: AgentLink, kind: Kind, payload: bytes) -> None:
        self._newcomers.discard(viewer)
        self._viewers.add(viewer)
        if kind is Kind.DISCOVER_REQUEST:
            self._calls.discover(payload, viewer.pid or 0, lambda answer: viewer.answer(Kind.DISCOVERED, answer))
        elif kind is Kind.SETTLED_REQUEST:
            self._calls.settle(lambda: viewer.answer(Kind.SETTLED, b""))
        else:
            self._calls.look(lambda: self._answer(viewer))

    def _answer(self, viewer: AgentLink) -> None:
        try:
            commands = self._calls.status()
            viewer.answer(Kind.STATUS, document(self._status(commands), commands))
        except Exception as error:  # noqa: BLE001  others wait for the same moment
            self._failed(viewer, error)

    def _failed(self, group: Hashable, error: Exception) -> None:
        """What goes wrong in one command's part must not end the others."""
        if self._calls.failed(group, error):
            return
        if isinstance(group, AgentLink):
            group.say(internal_error(error))
            group.end(ExitCode.INTERNAL)
            return
        if group is self._door:
            raise error
        traceback.print_exception(error)
        if self._door is None:
            # A private switchboard has no log.
            for agent in self._agents:
                agent.say(internal_error(error))
        self._loop.drop(group)

    def _has_ended(self, agent: AgentLink) -> None:
        for group in (self._newcomers, self._agents, self._viewers):
            group.discard(agent)
        self._calls.agent_has_ended(agent)

    def _status(self, commands: Sequence[CommandStatus]) -> BoardStatus:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        watches = self._calls.watches()
        return BoardStatus(
            pid=os.getpid(),
            started=round(self._started, 3),
            version=version(),
            sessions=len(commands),
            queued=sum(command.state == QUEUED for command in commands),
            watches=tuple(WatchStatus(one.namespace, one.selector, one.state, one.pods) for one in watches),
            buffered=self._calls.buffered,
            descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            descriptor_limit=limit,
        )
