"""
The switchboards of this container and this user, and how they are.

Owns: asking all of them, and what is said of those that can't be asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from mpirt.cli.ps.boards import Board, Row, Usage
from mpirt.errors import PeerError, Unreachable
from mpirt.rsh.switchboard import client, processes
from mpirt.rsh.switchboard.client import Client, NotUsed, places
from mpirt.rsh.switchboard.frames import Kind, frame
from mpirt.rsh.switchboard.status import CommandStatus, read_document

# A switchboard that starts takes less than a second, and a busy one no longer.
PATIENCE = 10.0
_REQUEST = frame(Kind.STATUS_REQUEST)


class Local:
    """All of them, with a connection to each that is kept for the next question."""

    def __init__(self, environ: Mapping[str, str], warn: Callable[[str], None]) -> None:
        """`warn` takes why a folder is not used."""
        self._places = places(environ)
        self._warn = warn
        self._warned: set[str] = set()
        self._clients: dict[str, Client] = {}

    def ask(self) -> list[Board]:
        """How they are. Raises Unreachable and PeerError."""
        return [board for place in self._places if (board := self._ask(place)) is not None]

    def close(self) -> None:
        """Leave them."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _ask(self, place: str) -> Board | None:
        # One that has ended since may have a successor. One that ends a second connection, too, can't be asked.
        for is_last in (False, True):
            asked = self._clients.pop(place, None) or self._connect(place)
            if asked is None:
                return None
            try:
                board = _board(place, asked.ask(_REQUEST, Kind.STATUS, PATIENCE))
            except (EOFError, ConnectionError):
                if is_last and asked.was_welcome:
                    raise PeerError(
                        f"the switchboard in {place} ends the connection instead of answering; it belongs to"
                        " a version of mpirt that has no status"
                    ) from None
            except TimeoutError:
                raise Unreachable(
                    f"the switchboard in {place} does not answer within {PATIENCE:.0f} s; it may be stopped or"
                    f" overloaded, see {place}/log"
                ) from None
            else:
                self._clients[place] = asked
                return board
            finally:
                if place not in self._clients:
                    asked.close()
        return None

    def _connect(self, place: str) -> Client | None:
        try:
            return client.connect(place, seconds=PATIENCE)
        except NotUsed as error:
            why = f"{place} {error}; it is not used"
            if why not in self._warned:
                self._warned.add(why)
                self._warn(why)
            return None


def _board(place: str, document: bytes) -> Board:
    status, commands = read_document(document)
    return Board(place, status, _usage(status.pid), tuple(Row(one, _usage(_agent(one))) for one in commands))


def _agent(command: CommandStatus) -> int | None:
    """Its pid, as long as it lives: the number may be another program's by now."""
    if command.agent is not None:
        with suppress(OSError):
            if Path(f"/proc/{command.agent}").stat().st_uid == os.geteuid():
                return command.agent
    return None


def _usage(pid: int | None) -> Usage:
    return Usage(processes.cpu_seconds(pid), processes.memory(pid))
