"""When a switchboard ends: the next one gets everything that it needs, and no byte is lost or doubled."""

from __future__ import annotations

import errno
import os
import signal
import struct
import subprocess

import pytest

from tests.unit.agent.board import HEADER, WINDOW, Connection, Ground, Kind, chunks, ended, number, read, until


def next_board(board: Ground, keep: bytes = b"kept") -> tuple[Connection, int]:
    connection = board.accept()
    return connection, connection.begin(keep).generation


def test_the_next_one_gets_counts_signals_and_the_last_keep(board: Ground) -> None:
    process, connection = board.connected("w-0", "true")
    connection.send(Kind.KEEP, b"newer")
    connection.send(Kind.OUT, b"12345")
    connection.send(Kind.ERR, b"123")
    connection.written_up_to(5, 3, 0)
    process.send_signal(signal.SIGUSR2)
    assert connection.expect(Kind.SIGNAL) == bytes([signal.SIGUSR2])
    connection.sock.close()

    told = board.accept().begin()

    assert (told.generation, told.out, told.err, told.keep) == (1, 5, 3, b"newer")
    assert (told.signals, told.words) == (bytes([signal.SIGUSR2]), [b"w-0", b"true"])


def test_what_was_sent_before_it_ended_is_taken(board: Ground) -> None:
    process, connection = board.connected()
    connection.send(Kind.OUT, b"a" * 60_000)
    connection.send(Kind.KEEP, b"last")
    connection.send_bytes(HEADER.pack(100 << 8 | Kind.OUT) + b"half of a frame")
    connection.sock.close()

    told = board.accept().begin()

    assert (told.out, told.keep) == (60_000, b"last")
    assert read(process, 60_000) == b"a" * 60_000


def test_counts_are_told_anew_and_lines_are_counted_from_the_start(board: Ground) -> None:
    _, connection = board.connected()
    connection.send(Kind.OUT, b"12345")
    connection.send(Kind.SAY, b"said\n")
    connection.written_up_to(5, 0, 1)
    connection.sock.close()

    connection, _ = next_board(board)

    assert connection.written() == (5, 0, 0)
    connection.send(Kind.SAY, b"said\n")
    assert connection.written() == (5, 0, 1)


def test_what_is_broken_is_told_again(board: Ground) -> None:
    process, connection = board.connected()
    assert process.stdout is not None
    process.stdout.close()
    connection.send(Kind.OUT, b"x")
    connection.expect(Kind.BROKEN)
    connection.sock.close()

    connection, _ = next_board(board)

    assert connection.expect(Kind.BROKEN) == struct.pack("<BI", 1, errno.EPIPE)
    assert connection.written() == (1, 0, 0)


def test_what_waits_for_a_slow_reader_counts_for_the_next_window(board: Ground) -> None:
    process, connection = board.connected()
    data = os.urandom(WINDOW)
    for piece in chunks(data):
        connection.send(Kind.OUT, piece)
    connection.sock.close()

    connection = board.accept()
    told = connection.begin()
    assert told.out == WINDOW
    assert connection.written() == (65536, 0, 0)
    connection.send(Kind.OUT, b"y" * 65536)
    assert read(process, WINDOW + 65536) == data + b"y" * 65536
    connection.written_up_to(WINDOW + 65536, 0, 0)


def test_stdin_that_is_still_needed_is_handed_over(board: Ground) -> None:
    process = board.start(stdin=subprocess.PIPE)
    connection = board.accept()
    connection.begin()
    connection.send(Kind.ROOM, number(6))
    assert process.stdin is not None
    process.stdin.write(b"abcdefgh")
    assert connection.stdin(6) == b"abcdef"
    connection.send(Kind.TAKEN, number(2))
    connection.sock.close()

    connection = board.accept()
    told = connection.begin()
    assert (told.flags, told.offset, told.stdin) == (1, 2, b"cdef")
    assert connection.written() == (0, 0, 0)
    connection.send(Kind.ROOM, number(100))
    assert connection.stdin(2) == b"gh"
    process.stdin.close()
    assert connection.expect(Kind.STDIN) == b""
    connection.sock.close()

    told = board.accept().begin()

    assert (told.flags, told.generation, told.offset, told.stdin) == (3, 2, 2, b"cdefgh")


def test_a_signal_that_comes_meanwhile_is_not_lost(ground: Ground) -> None:
    ground.listen()
    process, connection = ground.connected()
    connection.send(Kind.OUT, b"x")
    connection.written()
    connection.sock.close()
    # Connected, and not welcome yet.
    connection = ground.accept()
    process.send_signal(signal.SIGTERM)

    told = connection.begin()

    # It may have come after HANDOVER.
    if not told.signals:
        assert {connection.receive()[0], connection.receive()[0]} == {Kind.WRITTEN, Kind.SIGNAL}
    else:
        assert told.signals == bytes([signal.SIGTERM])


@pytest.mark.parametrize("stage", range(4), ids=["connected", "welcome", "sent and not read", "handed over"])
def test_it_may_end_at_any_stage(board: Ground, stage: int) -> None:
    process, connection = board.connected("w-0", "x" * 100_000)
    connection.send(Kind.OUT, b"before ")
    connection.written()
    connection.sock.close()
    connection = board.accept()
    if stage > 0:
        connection.send(Kind.WELCOME, struct.pack("<II", 1, 1))
    if stage == 2:
        until(lambda: connection.waiting() > 100_000, "the whole of HANDOVER")
    if stage > 2:
        connection.handover()
    connection.sock.close()

    connection = board.accept()
    told = connection.begin()

    # Whether anybody has seen what was sent the agent can't tell.
    assert told.generation in ({1}, {1, 2}, {2}, {2})[stage]
    assert (told.out, told.keep) == (7, b"kept")
    connection.send(Kind.OUT, b"after")
    connection.written_up_to(12, 0, 0)
    connection.send(Kind.FINISH, b"\x06")
    assert ended(process) == (6, b"before after", b"")


def test_each_byte_arrives_once_whatever_ends_in_between(board: Ground) -> None:
    process = board.start()
    data = os.urandom(1 << 20)
    got = b""
    sent = 0
    for turn in range(4):
        connection = board.accept()
        sent = connection.begin().out
        assert sent <= len(data)
        while sent < len(data) * (turn + 1) // 4:
            while sent + 20_000 - len(got) > WINDOW:
                got += read(process, 20_000)
            connection.send(Kind.OUT, data[sent : sent + 20_000])
            sent += len(data[sent : sent + 20_000])
        # In the middle of a frame.
        connection.send_bytes(HEADER.pack(5000 << 8 | Kind.OUT) + data[sent : sent + 1000])
        if turn < 3:
            connection.sock.close()

    got += read(process, sent - len(got))
    assert got == data[:sent]


def end_five_times(board: Ground) -> None:
    """Be five switchboards, each of which ends after a byte of output."""
    for generation in range(5):
        connection = board.accept()
        assert connection.begin().generation == generation
        connection.send(Kind.OUT, b"x")
        # The output is there: the agent has heard KEEP as well.
        while connection.written()[0] != generation + 1:
            pass
        connection.sock.close()


def test_after_five_ends_within_a_minute_a_private_one_goes_on(board: Ground) -> None:
    process = board.start()
    end_five_times(board)

    code, out, err = ended(process)

    assert (code, out) == (77, b"xxxxx")
    told = board.handed_over()
    assert (told.generation, told.out, told.keep) == (5, 5, b"kept")
    reason = f"it ended five times within a minute; see {board.place}/log"
    assert err == f"mpirt-rsh: the switchboard is lost: {reason}; this command gets one of its own\n".encode()


def test_five_private_ones_that_end_within_a_minute_end_the_command(board: Ground) -> None:
    board.private(
        "import struct\nagent.sendall(frame(1, struct.pack('<II', 1, 1)))\n"
        "note(receive(agent)[1][1])\nagent.sendall(frame(3, b'newer') + frame(4, b'y'))\nreceive(agent)\n"
    )
    process = board.start("--direct", "worker-0", "true")

    code, out, err = ended(process)

    assert (code, out, board.notes()) == (250, b"y" * 5, ["0", "1", "2", "3", "4"])
    assert err == b"mpirt-rsh: the switchboard is lost: it ended five times within a minute\n"


def test_a_private_one_that_is_killed_is_followed_by_another_that_goes_on(ground: Ground) -> None:
    ground.private(
        "import os, struct\nagent.sendall(frame(1, struct.pack('<II', 1, 1)))\npayload = receive(agent)[1]\n"
        "open(f'{root}/handover', 'wb').write(payload)\n"
        "if payload[1]:\n    agent.sendall(frame(4, b'after'))\n"
        "    while receive(agent)[1][:1] != bytes([12]):\n        pass\n"
        "    agent.sendall(frame(9, bytes([7])))\n"
        "else:\n    agent.sendall(frame(3, b'record') + frame(4, b'before '))\n    receive(agent)\n"
        "    os.kill(os.getpid(), 9)\n"
    )

    process = ground.start("--direct", "worker-0", "true")

    assert ended(process) == (7, b"before after", b"")
    told = ground.handed_over()
    assert (told.generation, told.out, told.keep, told.words) == (
        1,
        7,
        b"record",
        [b"--direct", b"worker-0", b"true"],
    )


def test_five_ends_before_the_command_was_started_lead_to_a_private_one(board: Ground) -> None:
    process = board.start()
    for _ in range(5):
        connection = board.accept()
        connection.begin(keep=b"")
        connection.sock.close()

    code, out, err = ended(process)

    assert (code, out, board.handed_over().words) == (77, b"", [b"worker-0", b"true"])
    assert err == (
        "mpirt-rsh: no switchboard: it ended five times within a minute; "
        f"see {board.place}/log; this command gets one of its own\n".encode()
    )


def test_a_signal_before_the_command_was_started_is_handed_over_to_a_private_one(board: Ground) -> None:
    process = board.start()
    connection = board.accept()
    connection.begin(keep=b"")
    connection.send(Kind.SAY, b"waiting\n")
    connection.written()
    process.send_signal(signal.SIGTERM)
    connection.expect(Kind.SIGNAL)

    connection.send(Kind.DIRECT, b"")

    assert ended(process)[0] == 77
    assert board.handed_over().signals == bytes([signal.SIGTERM])
