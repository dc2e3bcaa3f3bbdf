"""stdin: read as far as it is asked for, kept until it is not needed, left alone where it is not ours to read."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.agent.board import DEADLINE, STDIN_KEPT, Connection, Ground, Kind, chunks, number


def settle(connection: Connection) -> None:
    """All that the agent has to do up to now is done."""
    connection.send(Kind.ERR, b"x")
    connection.expect(Kind.WRITTEN)


def test_nothing_is_read_before_it_is_asked_for(board: Ground) -> None:
    ours, theirs = os.pipe()
    _, connection = board.connected(stdin=ours)
    os.write(theirs, b"for others")
    settle(connection)

    os.set_blocking(ours, False)
    assert os.read(ours, 100) == b"for others"
    os.close(ours)
    os.close(theirs)


def test_no_byte_is_read_beyond_what_was_asked_for(board: Ground) -> None:
    ours, theirs = os.pipe()
    _, connection = board.connected(stdin=ours)
    os.write(theirs, b"mine, and others'")

    connection.send(Kind.ROOM, number(4))
    assert connection.stdin(4) == b"mine"
    settle(connection)
    assert os.read(ours, 100) == b", and others'"
    os.close(ours)
    os.close(theirs)


def test_all_of_it_and_its_end_come(board: Ground) -> None:
    data = os.urandom(STDIN_KEPT + 5)
    process = board.start(stdin=subprocess.PIPE)
    connection = board.accept()
    connection.begin()
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)
    left, came = data, b""
    while len(came) < len(data):
        connection.send(Kind.TAKEN, number(len(came)))
        connection.send(Kind.ROOM, number(len(came) + 50_000))
        if left:
            with contextlib.suppress(BlockingIOError):
                left = left[os.write(process.stdin.fileno(), left[:65536]) :]
        came += connection.expect(Kind.STDIN)
    process.stdin.close()
    connection.send(Kind.ROOM, number(1 << 40))

    assert connection.expect(Kind.STDIN) == b""
    assert came == data


def test_it_keeps_a_mib_at_most(board: Ground) -> None:
    process = board.start(stdin=subprocess.PIPE)
    connection = board.accept()
    connection.begin()
    connection.send(Kind.ROOM, number(1 << 40))
    assert process.stdin is not None
    for piece in chunks(bytes(STDIN_KEPT)):
        process.stdin.write(piece)
    process.stdin.write(b"more")

    assert connection.stdin(STDIN_KEPT) == bytes(STDIN_KEPT)
    settle(connection)
    connection.send(Kind.TAKEN, number(4))
    assert connection.stdin(4) == b"more"


def test_a_regular_file_is_read_where_it_stands(board: Ground, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"first second")
    with (tmp_path / "in").open("rb") as file:
        os.lseek(file.fileno(), 6, os.SEEK_SET)
        _, connection = board.connected(stdin=file)
        connection.send(Kind.ROOM, number(3))
        assert connection.stdin(3) == b"sec"
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 9

        connection.send(Kind.ROOM, number(100))
        assert connection.stdin(3) == b"ond"
        assert connection.expect(Kind.STDIN) == b""


def test_a_socket_is_read_without_waiting(board: Ground) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        _, connection = board.connected(stdin=theirs)
        connection.send(Kind.ROOM, number(100))
        ours.sendall(b"by a socket")
        assert connection.stdin(11) == b"by a socket"
        assert os.get_blocking(theirs.fileno())
        ours.shutdown(socket.SHUT_WR)

        assert connection.expect(Kind.STDIN) == b""


def test_a_folder_can_not_be_read_which_is_no_end(board: Ground, tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    _, connection = board.connected(stdin=fd)
    os.close(fd)

    connection.send(Kind.ROOM, number(100))

    assert connection.expect(Kind.STDIN_BROKEN) == struct.pack("<I", errno.EISDIR)


def test_the_null_device_is_none_but_has_an_end(board: Ground) -> None:
    board.start(stdin=subprocess.DEVNULL)
    connection = board.accept()
    assert connection.begin().flags == 0

    connection.send(Kind.ROOM, number(100))

    assert connection.expect(Kind.STDIN) == b""


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]], ids=str)
def test_closed_descriptors_are_nobody_elses(board: Ground, closed: list[int]) -> None:
    def close() -> None:
        for fd in closed:
            os.close(fd)

    process = board.start(stdin=subprocess.PIPE, preexec_fn=close)
    connection = board.accept()
    assert connection.begin().flags == (0 if 0 in closed else 1)

    assert {Path(f"/proc/{process.pid}/fd/{fd}").readlink() for fd in closed} == {Path("/dev/null")}
    connection.send(Kind.OUT, b"out")
    connection.send(Kind.ERR, b"err")
    connection.written_up_to(3, 3, 0)
    connection.send(Kind.FINISH, b"\x03")
    assert process.wait(DEADLINE) == 3


# Leads a session with a terminal, starts a program in the background, and brings it to the front when asked to.
LEADER = """
import fcntl, os, signal, subprocess, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
child = subprocess.Popen(sys.argv[2:], process_group=0)
os.read(int(sys.argv[1]), 1)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.tcsetpgrp(0, child.pid)
sys.exit(child.wait())
"""


class Terminal:
    """An agent in the background of a terminal."""

    def __init__(self, board: Ground) -> None:
        self.master, slave = pty.openpty()
        ours, self.go = os.pipe()
        self.leader = subprocess.Popen(
            [sys.executable, "-c", LEADER, str(ours), *map(str, board.words())], env=board.environment,
            stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[ours],
        )  # fmt: skip
        board.processes.append(self.leader)
        os.close(slave)
        os.close(ours)

    def close(self) -> None:
        os.close(self.master)
        os.close(self.go)


def test_a_terminal_is_left_alone_in_the_background(board: Ground) -> None:
    terminal = Terminal(board)
    connection = board.accept()
    connection.begin()
    connection.send(Kind.ROOM, number(100))
    os.write(terminal.master, b"typed\n")
    settle(connection)
    assert connection.is_quiet()

    os.write(terminal.go, b"\n")

    assert connection.stdin(6) == b"typed\n"
    connection.send(Kind.FINISH, b"\x04")
    assert terminal.leader.wait(DEADLINE) == 4
    terminal.close()
