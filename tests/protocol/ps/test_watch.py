"""`mpirt ps --watch` in a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.protocol.ps.launchers import Launcher
from tests.protocol.switchboard.agents import PATIENCE

MPIRT = Path(sys.executable).with_name("mpirt")
COMMAND = "exec sleep 60"


class Terminal:
    """A terminal, and the program in it."""

    def __init__(self, folder: Path, *words: str, **environ: str) -> None:
        self.keyboard, self._screen = pty.openpty()
        termios.tcsetwinsize(self._screen, (10, 100))
        self.before = termios.tcgetattr(self._screen)
        self.process = subprocess.Popen(
            [MPIRT, "ps", *words],
            stdin=self._screen, stdout=self._screen, stderr=self._screen,
            env={"PATH": os.environ["PATH"], "TERM": "xterm", "MPIRT_SWITCHBOARD": str(folder), **environ},
        )  # fmt: skip
        self.shown = b""

    def until(self, *texts: bytes) -> bytes:
        """What is shown from now on, up to the moment that all of these have been."""
        return self.until_shown(lambda fresh: all(text in fresh for text in texts))

    def until_shown(self, is_it: Callable[[bytes], bool]) -> bytes:
        """The same, up to the moment that it is what is wanted."""
        end, fresh = time.monotonic() + PATIENCE, b""
        while not is_it(fresh):
            ready, _, _ = select.select([self.keyboard], [], [], 1)
            assert time.monotonic() < end, fresh
            fresh += os.read(self.keyboard, 65536) if ready else b""
        return fresh

    def end(self) -> int:
        code = self.process.wait(PATIENCE)
        assert termios.tcgetattr(self._screen) == self.before
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.keyboard)
        os.close(self._screen)


def rates(shown: bytes) -> list[int]:
    """Each that has been shown, in percent of a processor."""
    return [int(rate) for rate in re.findall(rb"([0-9]+)% ", shown)]


@pytest.fixture
def terminal(launcher: Launcher) -> Iterator[Terminal]:
    found = Terminal(launcher.board.folder, "--watch")
    yield found
    found.close()


class TestALiveView:
    def test_shows_what_comes_and_goes(self, launcher: Launcher, terminal: Terminal) -> None:
        terminal.until(b"0 commands", b"COMMAND")

        agent = launcher.start("w-7", COMMAND)
        terminal.until(b"w-7", b"running", COMMAND.encode())
        agent.close()
        terminal.until(b"0 commands")

    def test_shows_how_busy_a_command_is_from_the_second_look_on(
        self, launcher: Launcher, terminal: Terminal
    ) -> None:
        launcher.start("w-7", "while :; do :; done")

        # On a busy machine it may get next to nothing between two measurements.
        shown = terminal.until_shown(lambda shown: any(rate >= 5 for rate in rates(shown)))

        assert b"%CPU" in shown
        assert b"w-7" in shown
        assert max(rates(shown)) <= 100 * (os.cpu_count() or 1)

    def test_ends_with_q_and_leaves_the_terminal_as_it_was(self, terminal: Terminal) -> None:
        terminal.until(b"q ends")
        os.write(terminal.keyboard, b"q")

        terminal.until(b"\x1b[?1049l")
        assert terminal.end() == 0

    def test_ends_with_ctrl_c(self, terminal: Terminal) -> None:
        terminal.until(b"q ends")
        terminal.process.send_signal(signal.SIGINT)

        terminal.until(b"\x1b[?1049l")
        assert terminal.end() == 0

    def test_says_how_many_do_not_fit(self, launcher: Launcher, terminal: Terminal) -> None:
        for number in range(12):
            launcher.start(f"w-{number}", COMMAND)

        assert b"w-11" not in terminal.until(b"12 commands", b"6 more below")

    def test_outlives_the_switchboard(self, launcher: Launcher, terminal: Terminal) -> None:
        terminal.until(b"0 commands")
        launcher.board.kill()

        terminal.until(b"no commands are running")


class TestATerminal:
    def test_has_the_table_cut_to_its_width(self, launcher: Launcher) -> None:
        launcher.start("w-0", "x" * 500)
        launcher.until(lambda status: status["sessions"] == 1)
        terminal = Terminal(launcher.board.folder)

        shown = terminal.until(b"xxx...", b"switchboard")

        assert terminal.end() == 0
        assert max(len(line.rstrip()) for line in shown.splitlines() if b"w-0" in line) == 100
        terminal.close()

    def test_that_knows_nothing_has_no_live_view(self, launcher: Launcher) -> None:
        terminal = Terminal(launcher.board.folder, "--watch", TERM="dumb")

        terminal.until(b"--watch needs a terminal")

        assert terminal.end() == 240
        terminal.close()
