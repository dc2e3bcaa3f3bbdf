"""What commands use in their pods, as STATUS tells it: asked of real keepers while somebody looks."""

from __future__ import annotations

import sys
import time
from typing import Any

from tests.apiserver.shell import End
from tests.protocol.ps.launchers import STATUS, STATUS_REQUEST, Launcher, Viewer

MIB = 1024 * 1024
BURNS = f"""exec {sys.executable} -c 'import os, time
data = bytearray(b"x") * (50 << 20)
while time.process_time() < 0.5: pass
os.write(1, b"ready")
time.sleep(1000)'"""
NOT_KNOWN = (None, None, None)


def usage(command: dict[str, Any]) -> tuple[object, object, object]:
    return command["cpu"], command["memory"], command["processes"]


class TestACommand:
    def test_that_burns_cpu_and_holds_memory(self, launcher: Launcher) -> None:
        launcher.start("w-0", BURNS)
        launcher.command_when(lambda one: one["stdout"] == 5)

        found = launcher.command_when(lambda one: one["cpu"] and one["cpu"] >= 0.48)

        assert found["cpu"] < 5
        assert 50 * MIB <= found["memory"] < 90 * MIB
        assert found["processes"] == 1


class TestAKeeperThatDoesNotAnswer:
    def unheard(self, launcher: Launcher) -> dict[str, Any]:
        """The one command, whose keeper is not heard any more and has to be asked anew. What was known of it."""
        launcher.start("w-0", "exec sleep 60")
        before: dict[str, Any] = launcher.command_when(lambda one: one["processes"] == 1)
        launcher.server.wait_for_session().end(End.HANG)
        # For a second all share an answer.
        launcher.command_when(lambda one: one["silence"] >= 1.5)
        return before

    def test_holds_up_the_answer_by_half_a_second_and_leaves_what_was_known(self, launcher: Launcher) -> None:
        before = self.unheard(launcher)
        began = time.monotonic()
        [found] = launcher.viewer.status()["commands"]

        assert 0.4 <= time.monotonic() - began < 4
        assert found["state"] == "running"
        assert usage(found) == usage(before)

    def test_holds_up_nobody_but_who_looks(self, launcher: Launcher) -> None:
        self.unheard(launcher)
        launcher.viewer.say(STATUS_REQUEST)

        agent = launcher.start("w-1", "exit 7")
        agent.end()

        assert agent.command.code == 7
        assert launcher.viewer.frame()[0] == STATUS

    def test_lets_several_who_look_share_an_answer(self, launcher: Launcher) -> None:
        self.unheard(launcher)
        others = [Viewer(launcher.board.folder) for _ in range(3)]
        for viewer in others:
            viewer.say(STATUS_REQUEST)

        assert [viewer.frame()[0] for viewer in others] == [STATUS] * 3
        for viewer in others:
            viewer.close()

    def test_lets_nobody_ask_again_before_the_answer(self, launcher: Launcher) -> None:
        self.unheard(launcher)
        greedy = Viewer(launcher.board.folder)
        greedy.say(STATUS_REQUEST)
        greedy.say(STATUS_REQUEST)

        assert greedy.frame() == (0, b"")
        greedy.close()
        assert launcher.viewer.status()["sessions"] == 1
