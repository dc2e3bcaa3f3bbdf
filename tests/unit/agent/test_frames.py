"""The frames, one by one, and what happens to those that break a rule."""

from __future__ import annotations

import errno
import os
import signal
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.agent.board import HEADER, WINDOW, Ground, Kind, chunks, ended, frame, number, read


def welcome(protocol: int = 1) -> bytes:
    return struct.pack("<II", protocol, 1)


class TestTheHandover:
    def test_it_has_the_words_the_folder_and_the_environment(self, board: Ground, tmp_path: Path) -> None:
        board.start("w-0", "echo 'a  b'", "", environment={"A": "1=2"}, cwd=tmp_path)

        told = board.accept().begin()

        assert (told.called, told.folder) == (b"mpirt-rsh", os.fsencode(tmp_path))
        assert told.words == [b"w-0", b"echo 'a  b'", b""]
        assert b"A=1=2" in told.environment
        assert (told.flags, told.generation, told.out, told.err, told.offset) == (0, 0, 0, 0, 0)
        assert (told.signals, told.keep, told.stdin) == (b"", b"", b"")

    def test_it_says_that_there_is_a_stdin(self, board: Ground) -> None:
        board.start(stdin=subprocess.PIPE)

        assert board.accept().begin().flags == 1

    def test_it_may_have_a_megabyte_of_words_and_of_variables(self, board: Ground) -> None:
        words = [f"{count:02}" * 10_000 for count in range(45)]
        variables = {f"V{count}": f"{count:02}" * 10_000 for count in range(45)}
        board.start(*words, environment=variables)

        told = board.accept().begin()

        assert told.words == [word.encode() for word in words]
        assert {f"{name}={value}".encode() for name, value in variables.items()} <= set(told.environment)

    def test_words_that_are_not_text_come_as_they_are(self, board: Ground) -> None:
        board.start("w-0", os.fsdecode(b"\xff\xfe"))

        assert board.accept().begin().words == [b"w-0", b"\xff\xfe"]


class TestOutput:
    def test_it_is_written_and_counted(self, board: Ground) -> None:
        process, connection = board.connected()

        connection.send(Kind.OUT, b"said")
        assert connection.written() == (4, 0, 0)
        connection.send(Kind.ERR, b"warned")
        assert connection.written() == (4, 6, 0)
        connection.send(Kind.FINISH, b"\x05")
        assert ended(process) == (5, b"said", b"warned")

    def test_a_reader_that_stands_still_holds_up_nothing_else(self, board: Ground) -> None:
        process, connection = board.connected()
        data = os.urandom(WINDOW)

        for piece in chunks(data):
            connection.send(Kind.OUT, piece)
        connection.send(Kind.ERR, b"warned\n")
        assert read(process, 7, "stderr") == b"warned\n"
        while connection.written()[1] != 7:
            pass
        connection.send(Kind.FINISH, b"\x00")
        assert process.wait(30) == 0

    def test_all_of_a_window_arrives_when_it_is_read(self, board: Ground) -> None:
        process, connection = board.connected()
        data = os.urandom(4 * WINDOW)

        sent = 0
        got = b""
        for piece in chunks(data):
            while sent + len(piece) - len(got) > WINDOW:
                got += read(process, 65536)
                connection.written()
            connection.send(Kind.OUT, piece)
            sent += len(piece)
        got += read(process, len(data) - len(got))
        connection.written_up_to(len(data), 0, 0)
        assert got == data

    @pytest.mark.parametrize("kind", [Kind.OUT, Kind.ERR, Kind.SAY])
    def test_more_than_a_window_breaks_a_rule(self, board: Ground, kind: Kind) -> None:
        _, connection = board.connected()
        filler = Kind.OUT if kind is Kind.OUT else Kind.ERR

        for _ in range(5):
            connection.send(filler, bytes(65536))
        # What a pipe holds has been written.
        assert sum(connection.written()) == 65536
        connection.send(kind, b"\n")

        assert connection.ends()

    def test_a_line_of_mpirts_own_begins_a_line(self, board: Ground) -> None:
        process, connection = board.connected()

        connection.send(Kind.SAY, b"one\n")
        assert connection.written() == (0, 0, 1)
        connection.send(Kind.ERR, b"half")
        connection.send(Kind.SAY, b"two\n")
        connection.written_up_to(0, 4, 2)
        connection.send(Kind.ERR, b"whole\n")
        connection.send(Kind.SAY, b"three\n")
        connection.written_up_to(0, 10, 3)
        connection.send(Kind.FINISH, b"\x00")
        assert ended(process)[2] == b"one\nhalf\ntwo\nwhole\nthree\n"

    def test_many_lines_to_a_slow_reader_are_counted_one_by_one(self, board: Ground) -> None:
        process, connection = board.connected()
        expected = b""

        connection.send(Kind.ERR, bytes(65536))
        for count in range(500):
            connection.send(Kind.ERR, b"a")
            connection.send(Kind.SAY, f"{count}\n".encode())
            expected += b"a\n%d\n" % count
        assert read(process, 65536 + len(expected), "stderr")[65536:] == expected
        connection.written_up_to(0, 65536 + 500, 500)

    @pytest.mark.parametrize(("kind", "stream"), [(Kind.OUT, 1), (Kind.ERR, 2)])
    def test_one_that_nobody_reads_is_broken_and_drops_what_comes(
        self, board: Ground, kind: Kind, stream: int
    ) -> None:
        process, connection = board.connected()
        pipe = process.stdout if stream == 1 else process.stderr
        assert pipe is not None
        pipe.close()

        connection.send(kind, b"12345")
        assert connection.expect(Kind.BROKEN) == struct.pack("<BI", stream, errno.EPIPE)
        assert connection.written()[stream - 1] == 5
        connection.send(kind, b"12345")
        assert connection.written()[stream - 1] == 10

    def test_a_regular_file_is_written_by_a_thread(self, board: Ground, tmp_path: Path) -> None:
        with (tmp_path / "out").open("wb") as file:
            process, connection = board.connected(stdout=file)
        connection.send(Kind.OUT, b"into a file")

        assert connection.written() == (11, 0, 0)
        assert (tmp_path / "out").read_bytes() == b"into a file"
        assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 2

    def test_a_file_system_without_room_breaks_it(self, board: Ground) -> None:
        with Path("/dev/full").open("wb") as file:
            _, connection = board.connected(stdout=file)

        connection.send(Kind.OUT, b"too much")

        assert connection.expect(Kind.BROKEN) == struct.pack("<BI", 1, errno.ENOSPC)

    def test_a_socket_is_written_without_waiting(self, board: Ground) -> None:
        import socket  # noqa: PLC0415  only here

        ours, theirs = socket.socketpair()
        with ours, theirs:
            process, connection = board.connected(stdout=theirs)
            for piece in chunks(bytes(WINDOW)):
                connection.send(Kind.OUT, piece)
            connection.send(Kind.ERR, b"on")
            assert read(process, 2, "stderr") == b"on"
            assert os.get_blocking(theirs.fileno())
            connection.send(Kind.FINISH, b"\x00")
            assert process.wait(30) == 0

    def test_a_pipe_that_others_use_stays_as_it_is(self, board: Ground) -> None:
        ours, theirs = os.pipe()
        _, connection = board.connected(stdout=theirs)
        connection.send(Kind.OUT, b"x")
        assert os.read(ours, 1) == b"x"

        assert os.get_blocking(theirs)
        os.close(ours)
        os.close(theirs)


class TestTheEnd:
    def test_it_is_at_once_whatever_waits_to_be_written(self, board: Ground) -> None:
        process, connection = board.connected()
        for piece in chunks(bytes(WINDOW)):
            connection.send(Kind.OUT, piece)

        connection.send(Kind.FINISH, b"\xff")

        assert process.wait(30) == 255

    def test_an_agent_that_is_killed_is_noticed_by_the_connection(self, board: Ground) -> None:
        process, connection = board.connected()

        process.kill()

        assert connection.ends()


class TestSignals:
    @pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
    def test_one_is_told_once_the_command_is_handed_over(self, board: Ground, name: str) -> None:
        process, connection = board.connected()
        connection.send(Kind.OUT, b"x")
        connection.written()

        process.send_signal(signal.Signals[f"SIG{name}"])

        assert connection.expect(Kind.SIGNAL) == bytes([signal.Signals[f"SIG{name}"]])

    @pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
    def test_one_that_comes_before_ends_the_agent(self, board: Ground, name: str) -> None:
        process = board.start()
        board.accept()

        process.send_signal(signal.Signals[f"SIG{name}"])

        assert process.wait(30) == 128 + signal.Signals[f"SIG{name}"]

    def test_one_that_was_ignored_stays_ignored(self, board: Ground) -> None:
        process, connection = board.connected(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        connection.send(Kind.OUT, b"x")
        connection.written()

        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGUSR1)

        assert connection.expect(Kind.SIGNAL) == bytes([signal.SIGUSR1])

    def test_hundreds_are_told_and_the_last_is_not_lost(self, board: Ground) -> None:
        process, connection = board.connected()
        connection.send(Kind.OUT, b"x")
        connection.written()
        for _ in range(100):
            process.send_signal(signal.SIGUSR1)
            assert connection.expect(Kind.SIGNAL) == bytes([signal.SIGUSR1])
        process.send_signal(signal.SIGTERM)
        assert connection.expect(Kind.SIGNAL) == bytes([signal.SIGTERM])
        connection.sock.close()

        told = board.accept().begin()

        assert told.signals == bytes([signal.SIGUSR1] * 63 + [signal.SIGTERM])


def launched(board: Ground, program: Path) -> subprocess.Popen[bytes]:
    """A process that starts an agent and waits."""
    words = [str(word) for word in board.words(program=program)]
    return subprocess.Popen(
        ["sh", "-c", '"$@" & read line', "sh", *words],
        env=board.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )


class TestFollow:
    def test_the_end_of_the_process_that_started_it_is_a_hup_after_a_grace(
        self, board: Ground, impatient: Path
    ) -> None:
        with launched(board, impatient) as parent:
            connection = board.accept()
            connection.begin()
            connection.send(Kind.FOLLOW)
            connection.send(Kind.OUT, b"x")
            connection.written()
            parent.kill()
            parent.wait(30)

            assert connection.expect(Kind.SIGNAL) == bytes([signal.SIGHUP])
            connection.send(Kind.FINISH, b"\x00")
            assert connection.ends()

    def test_one_that_has_ended_already_is_a_hup_after_a_grace(self, board: Ground, impatient: Path) -> None:
        with launched(board, impatient):
            connection = board.accept()
            connection.begin()

        connection.send(Kind.FOLLOW)

        assert connection.expect(Kind.SIGNAL) == bytes([signal.SIGHUP])
        connection.send(Kind.FINISH, b"\x00")
        assert connection.ends()

    def test_a_command_that_ends_within_the_grace_gets_no_hup(self, board: Ground, patient: Path) -> None:
        with launched(board, patient):
            connection = board.accept()
            connection.begin()
            connection.send(Kind.FOLLOW)

        # The end of that process was there before each of these frames, and is looked at first.
        for count in (1, 2):
            connection.send(Kind.ERR, b"x")
            assert connection.written() == (0, count, 0)
        assert connection.is_quiet()
        connection.send(Kind.FINISH, b"\x00")
        assert connection.ends()

    def test_a_command_that_can_not_have_begun_has_no_grace(self, board: Ground, patient: Path) -> None:
        with launched(board, patient):
            connection = board.accept()
            connection.begin(keep=b"")
            connection.send(Kind.FOLLOW)

        assert connection.expect(Kind.SIGNAL) == bytes([signal.SIGHUP])
        connection.send(Kind.FINISH, b"\x00")
        assert connection.ends()


BREAKING = {
    "an unknown type": (11, b""),
    "a type of the agent's": (Kind.STDIN, b""),
    "a second WELCOME": (Kind.WELCOME, welcome()),
    "DIRECT after KEEP": (Kind.DIRECT, b"too late"),
    "an empty KEEP": (Kind.KEEP, b""),
    "a KEEP that is too long": (Kind.KEEP, bytes(8193)),
    "OUT that is too long": (Kind.OUT, bytes(65537)),
    "SAY without a newline": (Kind.SAY, b"half a line"),
    "an empty SAY": (Kind.SAY, b""),
    "a short ROOM": (Kind.ROOM, b"\x01"),
    "TAKEN of what was not told": (Kind.TAKEN, number(1)),
    "FINISH without a code": (Kind.FINISH, b""),
    "FOLLOW with something": (Kind.FOLLOW, b"x"),
}


class TestRules:
    @pytest.mark.parametrize("breaking", BREAKING.values(), ids=BREAKING.keys())
    def test_a_frame_that_breaks_one_ends_the_connection(self, board: Ground, breaking: tuple[int, bytes]) -> None:
        _, connection = board.connected()

        # It may end before it has been sent whole.
        with suppress(BrokenPipeError):
            connection.send(*breaking)

        assert connection.ends()

    def test_a_header_is_judged_before_the_payload_comes(self, board: Ground) -> None:
        _, connection = board.connected()

        connection.send_bytes(HEADER.pack(0xFFFFFF << 8 | Kind.OUT))

        assert connection.ends()

    def test_nothing_but_welcome_may_come_first(self, board: Ground) -> None:
        board.start()
        connection = board.accept()

        connection.send(Kind.KEEP, b"x")

        assert connection.ends()

    def test_frames_may_come_in_any_pieces(self, board: Ground) -> None:
        process, connection = board.connected()
        both = frame(Kind.OUT, b"abc") + frame(Kind.OUT, b"def")

        for byte in both:
            connection.send_bytes(bytes([byte]))

        assert read(process, 6) == b"abcdef"


def test_a_waiting_agent_needs_little_memory(board: Ground) -> None:
    process, connection = board.connected()
    connection.send(Kind.FOLLOW)
    connection.send(Kind.OUT, b"x" * 65536)
    assert read(process, 65536) == b"x" * 65536
    connection.written_up_to(65536, 0, 0)

    # What is of the file is shared by all that run.
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert int(status.split("RssAnon:")[1].split()[0]) <= 100


def test_nothing_is_inherited_by_accident(board: Ground) -> None:
    process, connection = board.connected()
    connection.send(Kind.OUT, b"x")
    connection.written()

    opened = [path for path in Path(f"/proc/{process.pid}/fdinfo").iterdir() if int(path.name) > 2]
    flags = {path.name: path.read_text().split("flags:\t")[1].split()[0] for path in opened}
    assert flags
    assert {name for name, octal in flags.items() if not int(octal, 8) & os.O_CLOEXEC} == set()
