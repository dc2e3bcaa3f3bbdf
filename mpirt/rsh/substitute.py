"""
What stands in for the agent where that can't be executed: on another processor, or on a noexec file system.

Owns: the agent's side of docs/switchboard.md, as little of it as a command needs, with a private switchboard in a
child process. The command ends if that is killed; the agent would start another one.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mpirt.errors import ExitCode
from mpirt.rsh.protocol.framing import FrameReader, frame
from mpirt.rsh.switchboard import main as switchboard
from mpirt.rsh.switchboard.frames import LARGEST, SIGNALS, Handover, Kind, write_handover

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_NEVER = float("inf")
# How long mpirun's daemons may take to notice its end, and how often to see whether it has ended.
_DAEMON_GRACE, _LOOK_AT_PARENT = 5.0, 2.0


def run(called: str, words: Sequence[str]) -> int:
    """Run one remote command, and return its code."""
    for fd in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    came, noted = os.pipe()
    os.set_blocking(noted, False)
    ours = _start_switchboard()
    signal.set_wakeup_fd(noted, warn_on_full_buffer=False)
    for number in _numbers():
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)
    command = _Command(ours, came)
    with suppress(OSError):
        command.hand_over(called, tuple(words))
        while command.code is None and command.turn():
            pass
    if command.code is not None:
        return command.code
    sys.stderr.write("mpirt-rsh: the switchboard of this command has ended\n")
    return ExitCode.CONNECTION_LOST if command.may_have_begun else ExitCode.INTERNAL


def _numbers() -> dict[int, int]:
    """The signals that are meant for the command, by their numbers here, and as Linux numbers them."""
    return {getattr(signal, f"SIG{name}"): number for number, name in SIGNALS.items()}


def _start_switchboard() -> socket.socket:
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            ours.close()
            os.setsid()
            switchboard.serve_one(theirs)
        finally:
            os._exit(0)
    theirs.close()
    return ours


class _Output:
    """One of stdout and stderr: what waits to be written, and how much of the command's has come."""

    def __init__(self, fd: int) -> None:
        self.fd, self.waiting, self.come = fd, bytearray(), 0
        self.broken = self.in_line = False

    def take(self, data: bytes) -> None:
        if data and not self.broken:
            self.waiting += data
            self.in_line = not data.endswith(b"\n")

    def write(self) -> int:
        """As much as a pipe that is ready takes without a wait. Returns why nothing can be written any more."""
        try:
            del self.waiting[: os.write(self.fd, self.waiting[: select.PIPE_BUF])]
        except OSError as error:
            self.broken = True
            self.waiting.clear()
            return error.errno or errno.EIO
        return 0


class _Command:
    """The command, between its switchboard and the descriptors of this process."""

    def __init__(self, connection: socket.socket, signals: int) -> None:
        self.code: int | None = None
        self.may_have_begun = False
        self._socket, self._signals = connection, signals
        self._incoming = FrameReader("the switchboard", {kind: LARGEST for kind in Kind if kind < Kind.HANDOVER})
        self._outputs: dict[int, _Output] = {Kind.OUT: _Output(_STDOUT), Kind.ERR: _Output(_STDERR)}
        self._read = self._room = self._lines = 0
        self._told: tuple[int, ...] = (0, 0, 0)
        self._has_stdin = True
        self._parent, self._follows, self._hup_at = os.getppid(), False, _NEVER

    def hand_over(self, called: str, words: tuple[str, ...]) -> None:
        given, null = os.fstat(_STDIN), Path(os.devnull).stat()
        is_null = stat.S_ISCHR(given.st_mode) and given.st_rdev == null.st_rdev
        try:
            folder = str(Path.cwd())
        except OSError:
            folder = ""
        handover = Handover(called, folder, words, os.environ, has_stdin=not is_null)
        self._send(Kind.HANDOVER, write_handover(handover))

    def turn(self) -> bool:
        """Wait, and do what can be done. False: the switchboard has ended."""
        reads = [
            self._socket.fileno(),
            self._signals,
            *([_STDIN] if self._has_stdin and self._room > self._read else []),
        ]
        writes = [output.fd for output in self._outputs.values() if output.waiting]
        readable, writable, _ = select.select(reads, writes, [], _LOOK_AT_PARENT if self._follows else None)
        if self._signals in readable:
            for number in os.read(self._signals, 1024):
                self._send(Kind.SIGNAL, bytes([_numbers()[number]]))
        self._look_at_parent()
        if _STDIN in readable:
            self._read_stdin()
        for output in self._outputs.values():
            if output.fd in writable and (error := output.write()):
                self._send(Kind.BROKEN, struct.pack("<BI", output.fd, error))
        is_there = self._socket.fileno() not in readable or self._hear()
        self._tell_written()
        return is_there

    def _hear(self) -> bool:
        data = self._socket.recv(LARGEST)
        for found in self._incoming.feed(data):
            self._take(found.kind, found.payload)
        return bool(data)

    def _take(self, kind: int, payload: bytes) -> None:
        match kind:
            case Kind.OUT | Kind.ERR:
                self._outputs[kind].come += len(payload)
                self._outputs[kind].take(payload)
            case Kind.SAY:
                errors = self._outputs[Kind.ERR]
                errors.take(b"\n" * errors.in_line + payload)
                self._lines += 1
            case Kind.ROOM:
                (self._room,) = struct.unpack("<Q", payload)
            case Kind.FOLLOW:
                self._follows = True
            case Kind.FINISH:
                self.code = payload[0]
        self.may_have_begun |= kind in (Kind.KEEP, Kind.OUT, Kind.ERR)

    def _read_stdin(self) -> None:
        try:
            data = os.read(_STDIN, min(LARGEST, self._room - self._read))
        except OSError as error:
            self._has_stdin = False
            self._send(Kind.STDIN_BROKEN, struct.pack("<I", error.errno or errno.EIO))
            return
        self._read += len(data)
        self._send(Kind.STDIN, data)
        self._has_stdin = bool(data)

    def _look_at_parent(self) -> None:
        """Its end counts as a HUP, once."""
        if self._follows and os.getppid() != self._parent:
            self._parent = os.getppid()
            self._hup_at = time.monotonic() + (_DAEMON_GRACE if self.may_have_begun else 0.0)
        if time.monotonic() >= self._hup_at:
            self._hup_at = _NEVER
            self._send(Kind.SIGNAL, bytes([signal.SIGHUP]))

    def _tell_written(self) -> None:
        """Of each stream, once all of it is written or dropped."""
        out, err = self._outputs.values()
        before_out, before_err, before_lines = self._told
        told = (
            before_out if out.waiting else out.come,
            *((before_err, before_lines) if err.waiting else (err.come, self._lines)),
        )
        if told != self._told:
            self._told = told
            self._send(Kind.WRITTEN, struct.pack("<QQQ", *told))

    def _send(self, kind: Kind, payload: bytes) -> None:
        self._socket.sendall(frame(kind, payload))
