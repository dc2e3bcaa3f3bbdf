"""mpirt-rsh as a process of its own. Owns: how it is started, what it is asked, and how it ended."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.apiserver.server import ApiServer
from tests.support.switchboards import SWITCHBOARD

RSH = Path(sys.executable).with_name("mpirt-rsh")
# More than anything here takes, the longest silence included.
PATIENCE = 60.0
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class Ended:
    """How an agent ended, and what it said."""

    code: int
    output: bytes
    errors: str

    @property
    def lines(self) -> list[str]:
        """The agent's own lines."""
        return [
            line.removeprefix("mpirt-rsh: ") for line in self.errors.splitlines() if line.startswith("mpirt-rsh: ")
        ]

    @property
    def line(self) -> str:
        """The one line that it said for itself."""
        assert "Traceback" not in self.errors
        assert len(self.lines) == 1, self
        return self.lines[0]


def environment(folder: Path, more: Mapping[str, str] = NOTHING) -> dict[str, str]:
    """A clean environment in which nothing leads to a cluster."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "MPIRT_CONNECT_TIMEOUT": "20",
        SWITCHBOARD: os.environ.get(SWITCHBOARD, "off"),
        **more,
    }


def closing(what: str) -> list[str]:
    """Words that start a program with a descriptor closed."""
    return ["sh", "-c", f'exec "$@" {what}', "sh"]


class Agent:
    """An agent that runs."""

    def __init__(
        self,
        words: Sequence[str],
        env: dict[str, str],
        *,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.PIPE,
        before: Sequence[str] = (),
        program: Path = RSH,
    ) -> None:
        """With `before`, words that start a program which starts the agent."""
        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            [*before, str(program), *words], env=env, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, bufsize=0
        )

    def wait(self, stdin: bytes | None = None) -> Ended:
        """Wait until it has ended."""
        output, errors = self.process.communicate(stdin, timeout=PATIENCE)
        return Ended(self.process.returncode, output or b"", errors.decode())

    def feed(self, data: bytes) -> None:
        """Give it the beginning of its stdin."""
        if data:
            assert self.process.stdin is not None
            self.process.stdin.write(data)

    def line(self) -> bytes:
        """The next line of its output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def wait_for_output(self) -> None:
        """Wait until there is some, or it has ended, and leave it unread."""
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], PATIENCE)[0], "it has written nothing"

    def kill(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Ground:
    """A server with the pod w-0, a folder, and the agents that were started on them."""

    def __init__(self, server: ApiServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.kubeconfig = str(server.kubeconfig(folder))
        self._agents: list[Agent] = []

    @property
    def witness(self) -> Path:
        """The file to which commands add a line."""
        return self.folder / "witness"

    @property
    def runs(self) -> int:
        """How many times a command has added its line."""
        return len(self.witness.read_text().splitlines()) if self.witness.exists() else 0

    def start(
        self,
        *words: str,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.PIPE,
        before: Sequence[str] = (),
        program: Path = RSH,
        env: Mapping[str, str] = NOTHING,
    ) -> Agent:
        """Start an agent. What it says goes to pipes."""
        settings = {"KUBECONFIG": self.kubeconfig, **env}
        agent = Agent(
            words, environment(self.folder, settings), stdin=stdin, stdout=stdout, before=before, program=program
        )
        self._agents.append(agent)
        return agent

    def run(self, *words: str, stdin: bytes | None = None, env: Mapping[str, str] = NOTHING) -> Ended:
        """Run an agent to its end."""
        source = subprocess.DEVNULL if stdin is None else subprocess.PIPE
        return self.start(*words, stdin=source, env=env).wait(stdin)

    def clear(self) -> None:
        """Leave no agent behind."""
        for agent in self._agents:
            agent.kill()


def begun(
    ground: Ground,
    command: str,
    *,
    stdin: int = subprocess.DEVNULL,
    before: Sequence[str] = (),
    env: Mapping[str, str] = NOTHING,
) -> Agent:
    """An agent whose command has written its first line."""
    agent = ground.start("w-0", command, stdin=stdin, before=before, env=env)
    assert agent.line() == b"begun\n"
    return agent
