"""What an endurance run notes of a switchboard."""

from __future__ import annotations

from tests.protocol.ps.launchers import Launcher
from tests.support.switchboards import Figures, look


def test_the_descriptors_are_those_that_are_there_when_nobody_looks(launcher: Launcher) -> None:
    # The switchboard itself opens a folder to count them.
    before = launcher.viewer.status()["descriptors"] - 1
    found = set()
    for _ in range(50):
        figures = Figures()
        look(figures, launcher.board.folder, [])
        found.add(figures.descriptors)
        launcher.until(lambda status: status["descriptors"] - 1 == before)

    assert found == {before}
