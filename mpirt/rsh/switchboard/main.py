"""
The switchboard's process: started by an agent, with the listening socket as descriptor 3.

Owns: putting the parts together, and the end. What goes wrong here is in the file that an agent has made stderr.
"""

from __future__ import annotations

import gc
import os
import resource
import socket
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mpirt import names
from mpirt.boards.protocol import read_question
from mpirt.errors import ExitCode, internal_error
from mpirt.rsh.ports.loop import Loop
from mpirt.rsh.switchboard.agentlink import AgentLink
from mpirt.rsh.switchboard.budget import Budget
from mpirt.rsh.switchboard.calls import Calls
from mpirt.rsh.switchboard.door import IDLE_SECONDS, Door
from mpirt.rsh.switchboard.frames import Kind
from mpirt.rsh.switchboard.status import QUEUED, BoardStatus, WatchStatus, document

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from mpirt.rsh.switchboard.frames import Handover
    from mpirt.rsh.switchboard.status import CommandStatus

_LISTENER = 3
# A thousand sessions that each wake up once in a while are a thousand waits less so.
_GRAIN = 0.05
# What the process itself needs, and each command: its agent, its exec, and a watch where each pod has its own.
_OWN_DESCRIPTORS = 24
_DESCRIPTORS_EACH = 3
# Agents beyond that, who are told to go on without us.
_TURNED_AWAY_AT_ONCE = 8


def main(*, idle_seconds: float = IDLE_SECONDS) -> int:
    """Serve agents until there have been none for a while."""
    os.umask(0o077)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        folder = Path(os.environ[names.SWITCHBOARD_VARIABLE])
        listener = socket.socket(fileno=_LISTENER)
    except (KeyError, OSError):
        sys.stderr.write("mpirt-switchboard: agents of mpirt-rsh start it, with a socket; people don't\n")
        return 2
    # None of what was imported is ever garbage.
    gc.freeze()
    Switchboard(listener, folder, idle_seconds=idle_seconds).run()
    return 0


class Switchboard:
    """The agents, their commands, and the loop that has them all."""

    def __init__(self, listener: socket.socket, folder: Path, *, idle_seconds: float) -> None:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._loop = Loop(self._failed, grain=_GRAIN)
        self._calls = Calls(self._loop)
        self._most = max(1, (limit - _OWN_DESCRIPTORS - _TURNED_AWAY_AT_ONCE) // _DESCRIPTORS_EACH)
        self._budget = Budget()
        self._started = time.time()
        # Who has connected and said nothing yet; agents; and who only looks, which keeps no switchboard alive.
        self._newcomers: set[AgentLink] = set()
        self._agents: set[AgentLink] = set()
        self._viewers: set[AgentLink] = set()
        self._door = Door(
            listener,
            folder,
            let_in=self._let_in,
            is_full=self._is_full,
            count=self._count,
            idle_seconds=idle_seconds,
        )

    def run(self) -> None:
        """Until the door is closed and everybody has left."""
        self._loop.add(self._door, self._door.act, group=self._door)
        before = None
        while not self._door.is_closed or self._newcomers or self._agents or self._calls:
            self._loop.turn()
            self._calls.settle_if_heard()
            # Turns come by the thousand while output flows; few of them change anything for the door.
            if (present := (self._count(), self._is_full())) != before:
                before = present
                self._door.look()
                self._loop.touch(self._door)

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
        if kind is Kind.PODS_REQUEST:
            self._calls.ask(read_question(payload), lambda pods: viewer.answer(Kind.PODS, pods))
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
            group.fail(internal_error(error), ExitCode.INTERNAL)
            return
        if group is self._door:
            raise error
        traceback.print_exception(error)
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
            version=_version(),
            sessions=len(commands),
            queued=sum(command.state == QUEUED for command in commands),
            watches=tuple(WatchStatus(one.namespace, one.selector, one.state, one.pods) for one in watches),
            buffered=self._calls.buffered,
            descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            descriptor_limit=limit,
        )


def _version() -> str:
    # Brings email and zipfile, which nobody needs who does not ask.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return version("mpirt")
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
