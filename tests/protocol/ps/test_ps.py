"""`mpirt ps` in a launcher, and of another one."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from mpirt.cli.main import main
from tests.apiserver.faults import Status
from tests.apiserver.pods import Pod, pod
from tests.apiserver.shell import Shell
from tests.protocol.ps.conftest import JOB
from tests.protocol.ps.launchers import Launcher

HERE = Path(sys.executable).parent
Say = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def at_hand(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that runs `mpirt ps` is in the launcher."""
    monkeypatch.setenv("MPIRT_SWITCHBOARD", str(launcher.board.folder))


def running(launcher: Launcher, *pods: str) -> None:
    for name in pods:
        launcher.start(name, "exec sleep 60")
    launcher.until(lambda status: [one["state"] for one in status["commands"]] == ["running"] * len(pods))


class TestHere:
    def test_a_table(self, launcher: Launcher, capsys: Say) -> None:
        running(launcher, "w-10", "w-2")

        assert main(["ps"]) == 0

        out, err = capsys.readouterr()
        lines = out.splitlines()
        assert lines[0].split() == [
            *("POD", "NODE", "STATE", "AGE", "CPU", "MEM", "OUT", "IN", "SILENT", "COMMAND"),
        ]
        assert [line.split()[0] for line in lines[1:3]] == ["w-2", "w-10"]
        assert lines[1].endswith("exec sleep 60")
        assert re.fullmatch(r"0\.\ds", lines[1].split()[4])
        assert lines[4].startswith(f"switchboard {launcher.board.process.pid}: 2 commands, 0 queued, watch: ")
        assert " s CPU, " in lines[4]
        assert err == ""

    def test_a_held_command_has_its_cpu_time_and_memory(self, launcher: Launcher, capsys: Say) -> None:
        launcher.start("w-1", "exec sleep 60")
        launcher.until(lambda status: [one["processes"] for one in status["commands"]] == [1])

        assert main(["ps"]) == 0
        cpu, memory = capsys.readouterr().out.splitlines()[1].split()[4:6]
        assert main(["ps", "-o", "{cpu:.0f} {processes}"]) == 0

        assert re.fullmatch(r"0\.[0-9]s", cpu)
        assert re.fullmatch(r"[0-9.]+[KM]", memory)
        assert capsys.readouterr().out == "0 1\n"

    def test_json(self, launcher: Launcher, capsys: Say) -> None:
        running(launcher, "w-1", "w-0")

        assert main(["ps", "--json"]) == 0

        [board] = json.loads(capsys.readouterr().out)["switchboards"]
        assert (board["folder"], board["pid"]) == (str(launcher.board.folder), launcher.board.process.pid)
        assert board["memory"] > 1024 * 1024
        assert [one["pod"] for one in board["commands"]] == ["w-0", "w-1"]
        assert board["commands"][0]["agent_memory"] > 1024 * 1024
        assert board["commands"][0]["agent_cpu"] > 0

    def test_no_switchboard(self, launcher: Launcher, capsys: Say) -> None:
        launcher.board.kill()

        assert main(["ps"]) == 0

        assert capsys.readouterr() == ("", "mpirt: no commands are running (no switchboard)\n")


class TestOfAJob:
    def launcher_pod(self, launcher: Launcher, *, path: Path = HERE) -> Pod:
        """Its exec runs here, with the switchboard's folder in its environment."""
        environ = (("PATH", f"{path}:/usr/bin:/bin"), ("MPIRT_SWITCHBOARD", str(launcher.board.folder)))
        launcher.server.always("exec", Shell(environ=environ))
        labels = {**JOB, "mpirt.dev/role": "launcher"}
        made = pod("train-launcher-x", labels=labels, containers=("main", "side"))
        launcher.server.world.put(made)
        return made

    @pytest.fixture(autouse=True)
    def outside(self, launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBECONFIG", str(launcher.server.kubeconfig(launcher.folder)))
        monkeypatch.setenv("MPIRT_SWITCHBOARD", "/nowhere")
        monkeypatch.setenv("MPIRT_CONTAINER", "worker")
        monkeypatch.setenv("PATH", f"{HERE}:{os.environ['PATH']}")

    def test_it_runs_in_its_launcher(self, launcher: Launcher, capsys: Say) -> None:
        running(launcher, "w-3")
        self.launcher_pod(launcher)

        assert main(["ps", "train", "-n", "ml", "-o", "{pod} {state} {command}"]) == 0

        assert capsys.readouterr() == ("w-3 running exec sleep 60\n", "")
        asked = launcher.server.asked("exec")[-1]
        assert asked.query["container"] == "main"

    def test_nothing_runs_there(self, launcher: Launcher, capsys: Say) -> None:
        self.launcher_pod(launcher)
        launcher.board.kill()

        assert main(["ps", "train"]) == 0

        assert capsys.readouterr() == ("", "mpirt: no commands are running (no switchboard)\n")

    def test_the_image_has_no_mpirt(self, launcher: Launcher, capsys: Say) -> None:
        self.launcher_pod(launcher, path=Path("/nowhere"))

        assert main(["ps", "train"]) == 252

        assert "the launcher pod train-launcher-x has no program mpirt, neither in /opt/mpirt/bin" in (
            capsys.readouterr().err
        )

    def test_what_goes_wrong_there_is_told(self, launcher: Launcher, tmp_path: Path, capsys: Say) -> None:
        old = tmp_path / "old"
        old.mkdir()
        (old / "mpirt").write_text("#!/bin/sh\necho \"mpirt: No such command 'ps'\" >&2; exit 240\n")
        (old / "mpirt").chmod(0o755)
        self.launcher_pod(launcher, path=old)

        assert main(["ps", "train"]) == 245

        assert capsys.readouterr().err == (
            "mpirt: mpirt ps in the launcher pod train-launcher-x ended with 240: mpirt: No such command 'ps'\n"
        )

    def test_a_pod_that_may_not_be_entered_is_said(self, launcher: Launcher, capsys: Say) -> None:
        self.launcher_pod(launcher)
        launcher.server.always("exec", Status(403, "Forbidden", "no"))

        assert main(["ps", "train"]) == 242

        assert "train-launcher-x" in capsys.readouterr().err

    def test_there_is_no_such_job(self, capsys: Say) -> None:
        assert main(["ps", "nobody", "--context", "test"]) == 243

        assert capsys.readouterr().err == (
            "mpirt: there is no pod of a job nobody in namespace ml; name another one by -n or --context\n"
        )
