"""
mpirt-discover in a launcher in which commands run, so that there is a switchboard.

Owns: the question whether that has answered. The pods are those of the fixture `program`.
"""

from __future__ import annotations

from testbed.kube.wait import until
from tests.protocol.discover.program import PATIENCE, Ended, Program
from tests.protocol.ps.launchers import Launcher

FROM_THE_SWITCHBOARD = "mpirt-discover: pods from the switchboard\n"
FROM_THE_API_SERVER = "mpirt-discover: pods from the API server: "


class Boarded:
    """A program, and a switchboard whose commands run in the job's pods."""

    def __init__(self, program: Program, launcher: Launcher) -> None:
        self.program, self.launcher, self.server = program, launcher, program.server

    def run(self, *words: str, **environ: str) -> Ended:
        """Ask for a job, and hear where its pods come from."""
        place = {"MPIRT_SWITCHBOARD": str(self.launcher.board.folder)}
        known = {"MPIRT_LOG": "debug", "MPIRT_DISCOVER_FIRST_TIMEOUT": "0"}
        return self.program.run(*words, env={**place, **known, **environ})

    def job(self, *words: str, **environ: str) -> Ended:
        """Ask for the job of these tests."""
        return self.run("--selector", "mpirt.dev/job=train", *words, **environ)

    def warm(self, *words: str) -> Ended:
        """Ask until the switchboard answers."""

        def ask() -> Ended | None:
            ended = self.run(*words) if words else self.job()
            return ended if ended.errors.startswith(FROM_THE_SWITCHBOARD) else None

        ended = until(ask, within=PATIENCE, what="the switchboard to answer", instead=self.job)
        assert ended is not None
        return ended

    def lists(self) -> int:
        """How many lists the API server was asked for."""
        return len(self.server.asked("list"))
