"""STATUS on the wire: what a switchboard says of itself and of its commands, and to whom."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.apiserver.faults import Silence, Status
from tests.apiserver.pods import pod
from tests.apiserver.shell import End
from tests.protocol.ps.conftest import JOB
from tests.protocol.ps.launchers import DISCOVER_REQUEST, STATUS_REQUEST, Launcher, Viewer
from tests.protocol.switchboard.agents import HANDOVER, PATIENCE

MIB = 1024 * 1024
SAY = 6
NO_COMMAND = "no command runs in this cluster with these credentials"


class TestTheSwitchboard:
    def test_says_who_it_is(self, launcher: Launcher) -> None:
        status = launcher.viewer.status()

        process = psutil.Process(launcher.board.process.pid)
        assert status["pid"] == process.pid
        assert abs(status["started"] - process.create_time()) < 10
        assert status["descriptor_limit"] == resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        assert 5 < status["descriptors"] < 50
        assert (status["sessions"], status["queued"], status["buffered"]) == (0, 0, 0)
        assert (status["watches"], status["commands"]) == ([], [])

    def test_answers_several_viewers(self, launcher: Launcher) -> None:
        other = Viewer(launcher.board.folder)

        assert other.status()["pid"] == launcher.viewer.status()["pid"]
        other.close()

    def test_tells_of_the_watch_on_its_pods(self, launcher: Launcher) -> None:
        launcher.start("w-0", "sleep 60")

        status = launcher.until(lambda status: status["watches"] and status["watches"][0]["state"] == "watching")

        assert status["watches"] == [
            {"namespace": "ml", "selector": "mpirt.dev/job=train", "state": "watching", "pods": 1}
        ]

    def test_tells_of_a_watch_that_the_role_does_not_allow(self, launcher: Launcher) -> None:
        launcher.server.always("list", Status(403, "Forbidden", "no"))
        launcher.start("w-0", "sleep 60")

        assert launcher.until(lambda status: status["watches"] and status["watches"][0]["state"] == "refused")


class TestACommand:
    def test_that_runs(self, launcher: Launcher) -> None:
        agent = launcher.start("w-0", "printf 12345; printf 123 >&2; cat; sleep 60", MPIRT_CONTAINER="worker")

        found = launcher.command_when(lambda one: one["stderr"] and one["stdout"] and one["node"])

        assert (found["pod"], found["node"], found["namespace"], found["container"]) == (
            ("w-0", "node-1", "ml", "worker")
        )
        assert found["command"] == "printf 12345; printf 123 >&2; cat; sleep 60"
        assert (found["stdout"], found["stderr"], found["stdin"]) == (5, 3, 0)
        assert found["agent"] == os.getpid()
        assert abs(found["started"] + found["age"] - time.time()) < 5
        assert (found["held"], found["generation"]) == (True, 0)
        assert 0 <= found["silence"] < 10
        agent.until(lambda command: command.output == b"12345" and command.errors == b"123")

    def test_of_a_pod_with_one_container_names_it(self, launcher: Launcher) -> None:
        launcher.start("w-0", "sleep 60")

        assert launcher.command_when(lambda one: one["node"])["container"] == "worker"

    def test_that_reads_stdin(self, launcher: Launcher) -> None:
        agent = launcher.start("w-0", "cat", has_stdin=True)
        agent.until(lambda command: command.room > 0)
        agent.send_stdin(b"1234567")

        assert launcher.command_when(lambda one: one["stdout"] == 7)["stdin"] == 7

    def test_that_is_dialled_has_no_sign_of_life(self, launcher: Launcher) -> None:
        launcher.server.always("exec", Silence())
        launcher.start("w-0", "sleep 60")

        found = launcher.command_when(lambda one: one["state"] == "dial")

        assert (found["pod"], found["silence"], found["held"]) == ("w-0", None, False)

    def test_whose_pod_is_looked_up(self, launcher: Launcher) -> None:
        launcher.server.always("list", Silence())
        launcher.start("10.0.0.7", "sleep 60")

        found = launcher.command_when(lambda one: one["state"] == "lookup")

        assert (found["pod"], found["command"]) == ("10.0.0.7", "sleep 60")

    def test_that_could_not_be_understood_is_done(self, launcher: Launcher) -> None:
        launcher.start("w-0", "x", MPIRT_LEASE="soon")

        found = launcher.command_when(lambda one: one["state"] == "done")

        assert found["command"] == "x"

    def test_whose_reader_is_slow(self, launcher: Launcher) -> None:
        launcher.start("w-0", "yes")

        found = launcher.command_when(lambda one: one["waiting"] >= MIB // 4)

        assert found["state"] == "running"
        assert found["stdout"] == found["waiting"]
        # The rest is on its way to the agent.
        assert 0 < launcher.viewer.status()["buffered"] < found["waiting"]

    def test_that_a_keeper_holds_and_whose_connection_is_lost(self, launcher: Launcher) -> None:
        launcher.start("w-0", "sleep 60")
        assert launcher.command_when(lambda one: one["state"] == "running")["held"]
        launcher.server.always("exec", Status(503))
        launcher.server.wait_for_session().end(End.EOF)

        found = launcher.command_when(lambda one: one["state"] == "detached")

        assert found["held"]
        assert found["silence"] >= 0
        assert (found["cpu"], found["memory"], found["processes"]) == (None, None, None)

    def test_that_another_switchboard_has_taken_over(self, launcher: Launcher) -> None:
        agent = launcher.start("w-0", "sleep 60")
        agent.until(lambda command: bool(command.kept))
        launcher.command_when(lambda one: one["state"] == "running")

        launcher.hand_over_again(agent)
        found = launcher.command_when(lambda one: one["state"] == "running")

        assert (found["generation"], found["held"]) == (1, True)
        # As long as its agent runs, which is this process.
        assert abs(found["started"] - psutil.Process().create_time()) < 5

    def test_that_has_ended_is_not_listed(self, launcher: Launcher) -> None:
        agent = launcher.start("w-0", "true")
        agent.end()

        assert launcher.until(lambda status: not status["commands"])["sessions"] == 0


class TestManyCommands:
    COUNT = 500

    def test_come_in_one_answer_of_several_frames(self, launcher: Launcher) -> None:
        """As many as dial at a time do so; the others wait for their turn."""
        launcher.server.always("exec", Silence())
        launcher.server.world.put(*(pod(f"n-{number}", labels=JOB) for number in range(self.COUNT)))
        command = "orted " + "-mca key value " * 200
        for number in range(self.COUNT):
            launcher.start(f"n-{number}", command)
        launcher.until(lambda status: status["sessions"] == self.COUNT)

        pieces = launcher.viewer.pieces()
        status = launcher.viewer.status()

        assert [len(piece) for piece in pieces[:-1]] == [MIB] * (len(pieces) - 1)
        assert len(pieces) > 1
        states = [one["state"] for one in status["commands"]]
        assert {one["pod"] for one in status["commands"]} == {f"n-{number}" for number in range(self.COUNT)}
        assert {one["command"] for one in status["commands"]} == {command}
        assert (states.count("queued"), states.count("dial")) == (self.COUNT - 32, 32)
        assert status["queued"] == self.COUNT - 32


class TestAViewer:
    def test_that_hands_over_is_left(self, launcher: Launcher) -> None:
        launcher.viewer.status()
        launcher.viewer.say(HANDOVER, b"x")

        assert launcher.viewer.frame() == (0, b"")

    def test_an_agent_can_not_become(self, launcher: Launcher) -> None:
        agent = launcher.start("w-0", "sleep 60")
        agent.say(STATUS_REQUEST)

        with pytest.raises(EOFError):
            agent.until(lambda command: command.code is not None)

    def test_that_takes_no_answer_gets_no_other(self, launcher: Launcher) -> None:
        launcher.start("w-0", "sleep 60")
        launcher.until(lambda status: status["sessions"] == 1)
        greedy = Viewer(launcher.board.folder)
        greedy.say_at_once((STATUS_REQUEST, b""), (STATUS_REQUEST, b""))

        while greedy.frame()[0]:
            pass
        greedy.close()
        assert launcher.viewer.status()["sessions"] == 1

    def test_that_asks_for_pods_takes_the_answer_first(self, launcher: Launcher) -> None:
        launcher.start("w-0", "sleep 60")
        launcher.until(lambda status: status["watches"] and status["watches"][0]["state"] == "watching")
        greedy = Viewer(launcher.board.folder)
        # The first one is answered at the watch's next turn, which comes after both have been read.
        greedy.say_at_once((DISCOVER_REQUEST, launcher.question()), (STATUS_REQUEST, b""))

        assert greedy.frame()[0] == 0
        greedy.close()
        assert launcher.viewer.status()["sessions"] == 1

    def test_that_asks_for_pods_and_how_things_are_gets_both(self, launcher: Launcher) -> None:
        launcher.viewer.say(DISCOVER_REQUEST, launcher.question())
        (kind, pods), end = launcher.viewer.frame(), launcher.viewer.frame()

        assert (kind, end) == (12, (12, b""))
        assert pods == b"\0" + NO_COMMAND.encode()
        assert launcher.viewer.status()["sessions"] == 0

    @pytest.mark.parametrize(
        "payload", [b"", b"\1" + b"\0" * 7, b"\xff" * 40], ids=["nothing", "a word is missing", "huge"]
    )
    def test_that_asks_for_pods_in_another_form_is_left(self, launcher: Launcher, payload: bytes) -> None:
        strange = Viewer(launcher.board.folder)
        strange.say(DISCOVER_REQUEST, payload)

        assert strange.frame()[0] == 0
        strange.close()

    def test_that_goes_away_is_forgotten(self, launcher: Launcher) -> None:
        before = launcher.viewer.status()["descriptors"]
        other = Viewer(launcher.board.folder)
        other.status()
        assert launcher.viewer.status()["descriptors"] == before + 1
        other.close()

        assert launcher.until(lambda status: status["descriptors"] == before)

    def test_whose_answer_can_not_be_made_holds_up_no_other(self, launcher: Launcher) -> None:
        other = Viewer(launcher.board.folder)
        # It has to open a folder to count its open files, and can't.
        resource.prlimit(launcher.board.process.pid, resource.RLIMIT_NOFILE, (4, 4))
        for viewer in (launcher.viewer, other):
            viewer.say(STATUS_REQUEST)

        assert [viewer.frame()[0] for viewer in (launcher.viewer, other)] == [SAY, SAY]
        other.close()

    def test_does_not_keep_the_switchboard(self, tmp_path: Path) -> None:
        code = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3); from mpirt.cli.switchboard import main; "
            "sys.exit(main(idle_seconds=0.5))"
        )
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "socket"))
            listener.listen()
            board = subprocess.Popen(
                [sys.executable, "-c", code, str(listener.fileno())],
                pass_fds=[listener.fileno()], env={**os.environ, "MPIRT_SWITCHBOARD": str(tmp_path)},
            )  # fmt: skip
        viewer = Viewer(tmp_path)
        end = time.monotonic() + PATIENCE

        with contextlib.suppress(BrokenPipeError):
            while board.poll() is None:
                assert time.monotonic() < end
                viewer.say(STATUS_REQUEST)
                viewer.frame()
                time.sleep(0.05)

        assert board.wait(PATIENCE) == 0
        viewer.close()
        assert not (tmp_path / "socket").exists()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
    def test_of_another_user_is_not_served(self, launcher: Launcher) -> None:
        launcher.board.folder.chmod(0o777)
        (launcher.board.folder / "socket").chmod(0o777)
        # It becomes that user once it has started: he may not enter the folders that this Python is in.
        code = (
            "import os, socket; os.setgroups([]); os.setgid(65534); os.setuid(65534); "
            "s = socket.socket(socket.AF_UNIX); s.connect('socket'); print(s.recv(100))"
        )

        done = subprocess.run(
            ["/usr/bin/env", "-i", sys.executable, "-I", "-S", "-c", code],
            check=True, capture_output=True, cwd=launcher.board.folder, timeout=PATIENCE,
        )  # fmt: skip

        assert done.stdout == b"b''\n"
