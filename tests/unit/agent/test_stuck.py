"""
Reads and writes that are stuck in descriptors that can't be opened anew.

The agent is another user than the one whose pipes it has, so that /proc/self/fd opens none of them.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.agent.board import DEADLINE, WINDOW, Ground, Kind, chunks, make_ground, number

USER = 12345


def become_another() -> None:
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)


@pytest.fixture
def board(root: None, program: Path) -> Iterator[Ground]:
    """Where another user's agents find a switchboard of that user."""
    # pytest's own folders are root's alone.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    made = make_ground(folder, Path(shutil.copy(program, folder / "agent-1")))
    made.place.mkdir(mode=0o700)
    os.chown(made.place, USER, USER)
    # Whose socket it is the kernel notes when it begins to listen.
    os.seteuid(USER)
    try:
        made.listen()
    finally:
        os.seteuid(0)
    yield made
    made.close()
    shutil.rmtree(folder)


def test_a_write_that_is_stuck_keeps_neither_signals_nor_the_end_away(board: Ground) -> None:
    process, connection = board.connected(preexec_fn=become_another)
    for piece in chunks(bytes(WINDOW)):
        connection.send(Kind.OUT, piece)
    connection.send(Kind.OUT, b"")
    while connection.written()[0] < 65536:
        pass

    assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 2
    process.send_signal(signal.SIGTERM)
    assert connection.expect(Kind.SIGNAL) == bytes([signal.SIGTERM])
    connection.send(Kind.FINISH, b"\x08")
    assert process.wait(DEADLINE) == 8


def test_a_read_that_is_stuck_keeps_neither_output_nor_the_end_away(board: Ground) -> None:
    ours, theirs = os.pipe()
    process, connection = board.connected(stdin=ours, preexec_fn=become_another)
    connection.send(Kind.ROOM, number(4))
    os.write(theirs, b"12")
    assert connection.stdin(2) == b"12"

    connection.send(Kind.OUT, b"said")
    assert connection.written() == (4, 0, 0)
    os.write(theirs, b"3456")
    assert connection.stdin(2) == b"34"
    os.set_blocking(ours, False)
    assert os.read(ours, 10) == b"56"
    connection.send(Kind.ROOM, number(10))
    connection.send(Kind.FINISH, b"\x09")
    assert process.wait(DEADLINE) == 9
    os.close(ours)
    os.close(theirs)


def test_a_read_that_was_stuck_at_a_takeover_tells_the_next_one_no_more_than_it_asks_for(board: Ground) -> None:
    ours, theirs = os.pipe()
    process, connection = board.connected(stdin=ours, preexec_fn=become_another)
    connection.send(Kind.ROOM, number(100))
    os.write(theirs, b"12")
    assert connection.stdin(2) == b"12"
    connection.send(Kind.TAKEN, number(2))
    connection.sock.close()

    connection = board.accept()
    assert connection.begin().offset == 2
    connection.expect(Kind.WRITTEN)
    os.write(theirs, b"3456")
    connection.send(Kind.OUT, b"said")
    assert connection.written() == (4, 0, 0)
    assert connection.is_quiet()
    connection.send(Kind.ROOM, number(4))
    assert connection.stdin(2) == b"34"
    connection.send(Kind.ROOM, number(100))
    assert connection.stdin(2) == b"56"
    connection.send(Kind.FINISH, b"\x0b")
    assert process.wait(DEADLINE) == 11
    os.close(ours)
    os.close(theirs)


def test_a_takeover_waits_for_no_write_that_is_stuck(board: Ground) -> None:
    process, connection = board.connected(preexec_fn=become_another)
    for piece in chunks(bytes(WINDOW)):
        connection.send(Kind.OUT, piece)
    connection.sock.close()

    connection = board.accept()
    assert connection.begin().out == WINDOW
    connection.send(Kind.FINISH, b"\x0a")
    assert process.wait(DEADLINE) == 10
