"""What an endurance run notes of a switchboard."""

from __future__ import annotations

from tests.e2e.endurance.judging import Lap
from tests.e2e.endurance.looking import look
from tests.protocol.ps.launchers import Launcher


def test_the_descriptors_are_those_that_are_there_when_nobody_looks(launcher: Launcher) -> None:
    # The switchboard itself opens a folder to count them.
    before = launcher.viewer.status()["descriptors"] - 1
    found = set()
    for _ in range(50):
        lap = Lap()
        look(lap, launcher.board.folder, [])
        found.add(lap.descriptors)
        launcher.until(lambda status: status["descriptors"] - 1 == before)

    assert found == {before}
