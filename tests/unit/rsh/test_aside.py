"""Reads and writes that may take long never keep the loop waiting, and which files are meant."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mpirt.rsh.stdio.blocking import Reader, Writer, file_system, is_far
from mpirt.rsh.stdio.output import OutputPort

PATIENCE_MS = 20_000
MOUNTS = """\
22 28 0:21 / /sys rw,nosuid - sysfs sysfs rw
31 28 0:27 / /home rw,relatime shared:12 - nfs4 server:/home rw,vers=4.2,hard
32 28 0:28 / /data rw - fuse.s3fs s3fs rw
33 28 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw
34 28 0:29 / /cut
cut
"""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose ends keep their users waiting."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two that can't be opened anew."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def ready(fd: int, wants: int = select.POLLIN) -> None:
    poll = select.poll()
    poll.register(fd, wants)
    assert poll.poll(PATIENCE_MS), "nothing has happened"


def outcome(aside: Reader | Writer, ask: Callable[[], object]) -> object:
    """What comes of a call in the end."""
    while True:
        try:
            return ask()
        except BlockingIOError:
            ready(aside.fileno())


class TestAWrite:
    def test_that_has_to_wait_is_done_when_there_is_room(self, pipe: tuple[int, int]) -> None:
        reader, writer = pipe
        aside = Writer(writer)
        piece = bytes(200_000)

        with pytest.raises(BlockingIOError):
            aside.write(piece)
        read = 0
        while read < len(piece):
            read += len(os.read(reader, 65536))

        assert outcome(aside, lambda: aside.write(piece)) == len(piece)
        assert not aside.is_busy

    def test_that_fails_is_told_and_the_next_is_made(self, pipe: tuple[int, int]) -> None:
        aside = Writer(pipe[0])

        for _ in range(2):
            with pytest.raises(OSError, match="Bad file descriptor"):
                outcome(aside, lambda: aside.write(b"x"))


class TestARead:
    def test_comes_when_there_is_something(self, pipe: tuple[int, int]) -> None:
        reader, writer = pipe
        aside = Reader(reader)

        with pytest.raises(BlockingIOError):
            aside.read(10)
        os.write(writer, b"abc")

        assert outcome(aside, lambda: aside.read(10)) == b"abc"


class TestAnOutputThatCannotBeOpenedAnew:
    def test_never_waits_and_loses_nothing(self, sockets: tuple[socket.socket, socket.socket]) -> None:
        ours, theirs = sockets
        output = OutputPort(ours.fileno())
        data = os.urandom(2_000_000)

        output.add(data)
        output.say("a line")
        assert output.waiting > len(data) / 2

        read = b""
        theirs.settimeout(0)
        while output.waiting:
            output.drain()
            read += _read(theirs)
        read += _read(theirs)
        assert read == data + b"\nmpirt-rsh: a line\n"
        assert output.done == len(data)

    def test_loses_nothing_where_somebody_has_made_it_non_blocking(
        self, sockets: tuple[socket.socket, socket.socket]
    ) -> None:
        ours, theirs = sockets
        os.set_blocking(ours.fileno(), False)
        output = OutputPort(ours.fileno())
        data = os.urandom(2_000_000)

        output.add(data)
        read = b""
        theirs.settimeout(0)
        while output.waiting:
            output.drain()
            read += _read(theirs)

        assert read + _read(theirs) == data

    def test_is_broken_by_the_end_of_its_reader(self, sockets: tuple[socket.socket, socket.socket]) -> None:
        ours, theirs = sockets
        theirs.close()
        output = OutputPort(ours.fileno())

        output.add(b"x")
        while output.waiting:
            ready(output.fileno(), output.wants)
            output.drain()

        assert isinstance(output.broken_by, BrokenPipeError)


def _read(end: socket.socket) -> bytes:
    read = b""
    try:
        while piece := end.recv(65536):
            read += piece
    except BlockingIOError:
        pass
    return read


class TestFiles:
    @pytest.mark.parametrize(
        ("device", "kind"),
        [("0:27", "nfs4"), ("0:28", "fuse.s3fs"), ("8:1", "ext4"), ("0:29", "rootfs"), ("9:9", "rootfs")],
    )
    def test_are_known_by_their_device(self, device: str, kind: str) -> None:
        assert file_system(MOUNTS, device) == kind

    def test_of_this_machine_are_not_far(self) -> None:
        with Path("/proc/self/mountinfo").open("rb") as file:
            assert not is_far(file.fileno())
