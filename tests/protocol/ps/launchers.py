"""
A launcher: a switchboard's process, stand-in agents, and who asks how they are.

Owns: the bytes of STATUS and of DISCOVER_REQUEST as docs/switchboard.md has them, written a second time.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed.kube.wait import until
from tests.apiserver.server import ApiServer
from tests.protocol.switchboard.agents import PATIENCE, Agent, Board, Command

STATUS, STATUS_REQUEST, DISCOVER_REQUEST = 11, 71, 72
WELCOME = 1


class Viewer:
    """A client that only asks."""

    def __init__(self, folder: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(str(folder / "socket"))
        self._file = self._socket.makefile("rb")
        assert self.frame()[0] == WELCOME

    def say(self, kind: int, payload: bytes = b"") -> None:
        """A frame."""
        self.say_at_once((kind, payload))

    def say_at_once(self, *said: tuple[int, bytes]) -> None:
        """Frames that arrive together."""
        self._socket.sendall(b"".join(struct.pack("<I12x", len(each) << 8 | kind) + each for kind, each in said))

    def frame(self) -> tuple[int, bytes]:
        """The next frame; (0, nothing) at the end."""
        try:
            head = self._file.read(16)
        except ConnectionResetError:
            head = b""
        if len(head) < 16:
            return 0, b""
        (first,) = struct.unpack("<I12x", head)
        return first & 255, self._file.read(first >> 8)

    def pieces(self) -> list[bytes]:
        """The frames of an answer."""
        self.say(STATUS_REQUEST)
        found: list[bytes] = []
        while True:
            kind, payload = self.frame()
            assert kind == STATUS
            if not payload:
                return found
            found.append(payload)

    def status(self) -> Any:
        """The answer as a document."""
        return json.loads(b"".join(self.pieces()))

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class Launcher:
    """A switchboard, the agents that were started, and a viewer."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.board = Board(folder / "board")
        self.viewer = Viewer(self.board.folder)
        self.agents: list[Agent] = []
        self._environ = {
            "KUBECONFIG": str(server.kubeconfig(folder)),
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
        }

    def start(self, *words: str, has_stdin: bool = False, **environ: str) -> Agent:
        """An agent that has handed its command over. It reads nothing by itself."""
        agent = Agent(self.board.folder, Command(words, {**self._environ, **environ}, has_stdin=has_stdin))
        self.agents.append(agent)
        return agent.hand_over()

    def question(self) -> bytes:
        """DISCOVER_REQUEST for the hosts of the job."""
        environ = [f"{name}={self._environ[name]}" for name in ("KUBECONFIG", "HOME")]
        words = ["--selector", "mpirt.dev/job=train"]
        texts = [*words, *environ]
        return struct.pack("<II", len(words), len(environ)) + b"".join(text.encode() + b"\0" for text in texts)

    def hand_over_again(self, agent: Agent) -> Agent:
        """Kill the switchboard; the agent goes on with another one."""
        self.viewer.close()
        self.board.kill()
        agent.drain()
        self.board = Board(self.board.folder)
        self.viewer = Viewer(self.board.folder)
        following = Agent(self.board.folder, agent.command)
        self.agents.append(following)
        return following.hand_over()

    def until(self, holds: Callable[[Any], bool]) -> Any:
        """The first status of which that holds."""

        def ask() -> Any:
            found = self.viewer.status()
            return found if holds(found) else None

        return until(ask, within=PATIENCE, what="the status that is asked for", instead=self.viewer.status)

    def command_when(self, holds: Callable[[Any], bool]) -> Any:
        """The one command, once that holds."""
        [found] = self.until(lambda status: len(status["commands"]) == 1 and holds(status["commands"][0]))[
            "commands"
        ]
        return found

    def stop(self) -> None:
        self.viewer.close()
        for agent in self.agents:
            agent.close()
        self.board.kill()
        assert self.board.complaints == ""
