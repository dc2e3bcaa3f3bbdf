"""The first process of a launcher: its command, the signals for it, and what it waits for after a success."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from images import build
from tests.unit.agent.board import Connection, Ground, Kind, ended, read
from tests.unit.agent.conftest import ARCHITECTURE


@pytest.fixture(scope="session")
def init(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It, by its name."""
    return Path(shutil.copy(program, tmp_path_factory.mktemp("init") / "mpirt-init"))


@pytest.fixture(scope="session")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that waits for half a second only."""
    folder = tmp_path_factory.mktemp("hasty")
    made = build.build("agent", folder, ARCHITECTURE, "-DSETTLING_PATIENCE=500")
    return made.rename(folder / "mpirt-init")


def start(ground: Ground, init: Path, *words: str, **more: Any) -> subprocess.Popen[bytes]:
    """The first process of a launcher with this command."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([init, *words], env=ground.environment, bufsize=0, **{**pipes, **more})
    ground.processes.append(process)
    return process


def asked(board: Ground) -> Connection:
    """The connection of one whose command has ended with 0."""
    connection = board.accept()
    connection.send(Kind.WELCOME, struct.pack("<II", 1, os.getpid()))
    assert connection.expect(Kind.SETTLED_REQUEST) == b""
    return connection


class TestItsCommand:
    @pytest.mark.parametrize(
        ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
    )
    def test_says_its_code(self, ground: Ground, init: Path, script: str, code: int) -> None:
        assert ended(start(ground, init, "sh", "-c", script)) == (code, b"", b"")

    def test_has_its_streams_and_no_other_signals_blocked_than_before(self, ground: Ground, init: Path) -> None:
        script = "cat; grep SigBlk /proc/self/status >&2"

        process = start(ground, init, "sh", "-c", script, stdin=subprocess.PIPE)
        out, err = process.communicate(b"in\n", timeout=30)

        assert (process.returncode, out, err.split()) == (0, b"in\n", [b"SigBlk:", b"0" * 16])

    def test_starts_as_many_threads_as_a_rank_has_cpus(self, ground: Ground, init: Path) -> None:
        words = ("MPIRT_THREADS=4", str(init), "sh", "-c", "echo $OMP_NUM_THREADS; exit 7")

        assert ended(start(ground, Path("/usr/bin/env"), *words)) == (7, b"4\n", b"")

    @pytest.mark.parametrize(
        ("word", "code", "why"),
        [
            ("no-such-program", 127, "No such file or directory"),
            ("/etc/passwd", 126, "Permission denied"),
        ],
    )
    def test_that_can_not_be_started_is_named(
        self, ground: Ground, init: Path, word: str, code: int, why: str
    ) -> None:
        expected = f"mpirt-init: can't start {word}: {why}\n".encode()

        assert ended(start(ground, init, word)) == (code, b"", expected)

    def test_that_is_missing_is_asked_for(self, ground: Ground, init: Path) -> None:
        expected = b"mpirt-init: needs a command: mpirt-init COMMAND [ARG]...\n"

        assert ended(start(ground, init)) == (240, b"", expected)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
    def test_gets_the_signals_that_are_for_it(self, ground: Ground, init: Path, number: signal.Signals) -> None:
        name = number.name.removeprefix("SIG")
        script = f"trap 'exit 7' {name}; echo begun; while :; do sleep 0.05; done"
        process = start(ground, init, "sh", "-c", script)
        assert read(process, 6) == b"begun\n"

        process.send_signal(number)

        assert ended(process)[0] == 7

    def test_leaves_no_zombies_while_it_runs(self, ground: Ground, init: Path) -> None:
        # The shell in the middle ends before its child, which is then the first process's.
        orphan = "sh -c 'sleep 0.1 >&- & echo $!'"
        gone = "while [ -e /proc/$pid ]; do sleep 0.05; done"

        process = start(ground, init, "sh", "-c", f"pid=$({orphan}); {gone}; exit 7")

        assert ended(process) == (7, b"", b"")


class TestAfterASuccess:
    def test_it_ends_when_the_switchboard_has_noted_all_ends(self, board: Ground, init: Path) -> None:
        process = start(board, init, "true")
        connection = asked(board)
        assert process.poll() is None

        connection.send(Kind.SETTLED)

        assert ended(process) == (0, b"", b"")

    def test_it_ends_if_the_switchboard_does(self, board: Ground, init: Path) -> None:
        process = start(board, init, "true")

        asked(board).sock.close()

        assert ended(process)[0] == 0

    def test_it_does_not_wait_for_ever(self, board: Ground, hasty: Path) -> None:
        process = start(board, hasty, "true")
        asked(board)

        assert ended(process)[0] == 0

    def test_it_asks_no_switchboard_of_another_version(self, board: Ground, init: Path) -> None:
        process = start(board, init, "true")
        connection = board.accept()

        connection.send(Kind.WELCOME, struct.pack("<II", 2, 1))

        assert connection.ends()
        assert ended(process)[0] == 0

    def test_it_ends_at_once_if_it_is_told_to(self, board: Ground, init: Path) -> None:
        process = start(board, init, "true")
        asked(board)

        process.terminate()

        assert ended(process)[0] == 0

    def test_it_starts_no_switchboard(self, ground: Ground, init: Path) -> None:
        assert ended(start(ground, init, "true"))[0] == 0
        assert not ground.place.exists()


def test_after_a_failure_it_asks_nobody(board: Ground, init: Path) -> None:
    assert ended(start(board, init, "false"))[0] == 1

    assert board.listener is not None
    board.listener.settimeout(0)
    with pytest.raises(BlockingIOError):
        board.listener.accept()
