"""
An API server with pods, switchboards one after the other, and commands that outlive them.

Owns: what is started here, and its end. Whatever is waited for has a deadline.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mpirt
from images import build
from mpirt import agent
from tests.apiserver.pods import pod
from tests.apiserver.server import ApiServer
from tests.protocol.switchboard.agents import PATIENCE, Agent, Board, Command

NOTHING: Mapping[str, str] = {}
ARCHITECTURE = build.architecture()
# Where the package is that the agents start a switchboard of.
ROOT = str(Path(mpirt.__file__).resolve().parents[1])


class Yard:
    """One server, one folder for a socket."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.place = folder / "place"
        self.kubeconfig = str(server.kubeconfig(folder))
        self.boards: list[Board] = []
        self.complaints: list[str] = []
        self.lives: list[Life] = []
        self.agents: list[Agent] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.changed = threading.Condition()
        server.world.put(pod("w-0"))

    @property
    def board(self) -> Board:
        """The switchboard that there is now."""
        return self.boards[-1]

    def begin(self, **options: Any) -> Board:
        """Start a switchboard; the one before, if any, is killed."""
        if self.boards:
            self.board.kill()
            self.complaints.append(self.board.complaints)
        with self.changed:
            self.boards.append(Board(self.place, **options))
            self.changed.notify_all()
        return self.board

    def next_board(self, lost: Board) -> Board:
        """The switchboard after the one that was lost."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.board is not lost, PATIENCE), "there is no other switchboard"
            return self.board

    def environ(self, **more: str) -> dict[str, str]:
        """What an agent has; nothing in it leads to another cluster."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "KUBECONFIG": self.kubeconfig,
            **more,
        }

    def command(self, script: str, *, on: str = "w-0", has_stdin: bool = False, **more: str) -> Command:
        """A command that nobody has handed over."""
        return Command([on, script], self.environ(**more), has_stdin=has_stdin)

    def agent(self, script: str, **more: Any) -> Agent:
        """An agent that has handed a command over, in the test's hands."""
        return self.hand_over(self.command(script, **more))

    def hand_over(self, command: Command) -> Agent:
        found = Agent(self.board.folder, command).hand_over()
        self.agents.append(found)
        return found

    def live(self, script: str, stdin: bytes | None = None, **more: str) -> Life:
        """A command with an agent that goes from one switchboard to the next."""
        life = Life(self, self.command(script, has_stdin=stdin is not None, **more), stdin or b"")
        self.lives.append(life)
        life.start()
        return life

    def real(
        self, *words: str, env: Mapping[str, str] = NOTHING, before: Sequence[str] = (), **more: Any
    ) -> subprocess.Popen[bytes]:
        """
        An agent as launchers start it, which starts a switchboard if there is none.

        With `before`, words that start a program which starts the agent.
        """
        program = agent.path(ARCHITECTURE)
        assert program is not None, "make programs"
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environ = self.environ(**{"MPIRT_SWITCHBOARD": str(self.place), **env})
        self.place.mkdir(mode=0o700, exist_ok=True)
        process = subprocess.Popen(
            [*before, program, "--python", sys.executable, ROOT, "mpirt-rsh", *words],
            env=environ,
            **{**pipes, **more},
        )
        self.processes.append(process)
        return process

    def begun(self, *script: str, **more: Any) -> subprocess.Popen[bytes]:
        """The same whose command runs: it has said "begun" in its first line."""
        process = self.real("w-0", *script, **more)
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        return process

    def board_of_agents(self) -> int:
        """The pid of the switchboard that real agents have started, as soon as it serves."""
        waiting = threading.Event()
        for _ in range(int(PATIENCE * 50)):
            try:
                probe = Agent(self.place, Command([], {}))
            except OSError:
                waiting.wait(0.02)
                continue
            _, payload = probe.frame()
            probe.close()
            if payload:
                return int.from_bytes(payload[4:8], "little")
        raise AssertionError("no switchboard serves")

    def appears(self, name: str) -> None:
        """Wait for a file that a command makes."""
        waiting = threading.Event()
        for _ in range(int(PATIENCE * 50)):
            if (self.folder / name).exists():
                return
            waiting.wait(0.02)
        raise AssertionError(f"{name} did not appear")

    def close(self) -> None:
        """Leave nothing behind."""
        for found in self.agents:
            found.close()
        for process in self.processes:
            process.kill()
            process.wait(PATIENCE)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        if self.boards:
            self.board.kill()
        for life in self.lives:
            life.give_up()
        log = self.place / "log"
        if log.exists():
            self.complaints.append(log.read_text())


class Life(threading.Thread):
    """A command, and its agent on one switchboard after the other."""

    def __init__(self, yard: Yard, command: Command, stdin: bytes) -> None:
        super().__init__(daemon=True)
        self.command = command
        self._yard, self._stdin = yard, stdin
        self._gives_up = False
        self._fault: BaseException | None = None

    def run(self) -> None:
        board: Board | None = None
        try:
            while not (self._is_over or self._gives_up):
                board = self._yard.board if board is None else self._yard.next_board(board)
                self._serve(board)
        except BaseException as fault:  # noqa: BLE001  the test's own thread raises it
            self._fault = fault

    def until(self, holds: Callable[[Command], object]) -> None:
        """Wait until that holds of the command."""
        with self._yard.changed:
            assert self._yard.changed.wait_for(lambda: holds(self.command) or self._fault, PATIENCE), self
        self._check()

    def end(self) -> Command:
        """Wait for its end."""
        self.join(PATIENCE)
        self._check()
        assert not self.is_alive(), self
        return self.command

    def __repr__(self) -> str:
        found = self.command
        return f"{found} {len(found.output)} {len(found.errors)} {len(found.stdin)}"

    def give_up(self) -> None:
        """Let go of it."""
        self._gives_up = True
        with self._yard.changed:
            self._yard.changed.notify_all()

    @property
    def _is_over(self) -> bool:
        return self.command.code is not None or self.command.direct is not None

    def _check(self) -> None:
        if self._fault is not None:
            raise self._fault

    def _serve(self, board: Board) -> None:
        try:
            agent = Agent(board.folder, self.command)
        except OSError:
            return
        try:
            agent.hand_over()
            while not self._is_over and agent.hear():
                self._give_stdin(agent)
                with self._yard.changed:
                    self._yard.changed.notify_all()
        except (AssertionError, OSError):
            # It has ended in the middle of it, or should have.
            board.process.wait(PATIENCE)
        finally:
            if self._is_over:
                agent.close()
            else:
                agent.drain()

    def _give_stdin(self, agent: Agent) -> None:
        command = self.command
        while command.has_stdin and not command.stdin_ended:
            at = command.stdin_at + len(command.stdin)
            piece = self._stdin[at : min(command.room, at + 65536)]
            if not piece and (at < len(self._stdin) or command.room == 0):
                return
            agent.send_stdin(piece)
