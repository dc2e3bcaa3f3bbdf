"""
The switchboard as a process, and agents as docs/switchboard.md describes them, without processes.

Owns: a second implementation of the agents' side, which a test holds in its hands.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 60.0
STDOUT_CHANNEL = 1
WELCOME, DIRECT, KEEP, OUT, ERR, SAY, ROOM, TAKEN, FINISH, FOLLOW = range(1, 11)
HANDOVER, STDIN, STDIN_BROKEN, SIGNAL, WRITTEN, BROKEN = range(65, 71)


_MAIN = """
import os, resource, sys
listener, idle_seconds, descriptors = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
if listener != 3:
    os.dup2(listener, 3)
    os.close(listener)
if descriptors:
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
from mpirt.cli.switchboard import main
sys.exit(main(idle_seconds=idle_seconds))
"""


class Board:
    """A switchboard's process, and the folder with its socket."""

    def __init__(self, folder: Path, *, idle_seconds: float = 60.0, descriptors: int = 0) -> None:
        """`descriptors`: how many it may have at most; 0 is as many as this process."""
        self.folder = folder
        self.log = folder / "log"
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "socket").unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener, self.log.open("wb") as log:
            listener.bind(str(folder / "socket"))
            listener.listen(4096)
            words = [str(listener.fileno()), str(idle_seconds), str(descriptors)]
            self.process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, *words],
                pass_fds=[listener.fileno()],
                env={**os.environ, "MPIRT_SWITCHBOARD": str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def kill(self) -> None:
        """As kill -9 does."""
        self.process.kill()
        self.process.wait(PATIENCE)

    @property
    def complaints(self) -> str:
        """What it has written to its log."""
        return self.log.read_text()


@dataclass
class Command:
    """What an agent hands over, and what has become of it."""

    words: Sequence[str]
    environ: Mapping[str, str] = field(repr=False)
    called: str = "mpirt-rsh"
    has_stdin: bool = False
    generation: int = 0
    output: bytearray = field(default_factory=bytearray, repr=False)
    errors: bytearray = field(default_factory=bytearray, repr=False)
    said: list[str] = field(default_factory=list)
    lines_before: int = 0
    """How many of them other switchboards have said."""
    kept: bytes = b""
    stdin: bytes = field(default=b"", repr=False)
    """What was sent of it, from `stdin_at` on."""
    stdin_at: int = 0
    stdin_ended: bool = False
    room: int = 0
    signals: list[int] = field(default_factory=list)
    direct: str | None = None
    follows: bool = False
    code: int | None = None

    def handover(self) -> bytes:
        """The payload of HANDOVER."""
        flags = self.has_stdin | 2 * self.stdin_ended
        fixed = struct.pack("<BIQQQ", flags, self.generation, len(self.output), len(self.errors), self.stdin_at)
        counted = b"".join(
            struct.pack("<I", len(each)) + each for each in (bytes(self.signals), self.kept, self.stdin)
        )
        variables = [f"{name}={text}" for name, text in self.environ.items()]
        texts = [self.called, "/", *self.words, *variables]
        counts = struct.pack("<II", len(self.words), len(variables))
        return fixed + counted + counts + b"".join(os.fsencode(text) + b"\0" for text in texts)


class Agent:
    """An agent that is connected."""

    def __init__(self, place: Path, command: Command) -> None:
        self.command = command
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        try:
            self._socket.connect(str(place / "socket"))
        except OSError:
            # The switchboard was killed a moment ago.
            self._socket.close()
            raise
        self._unread = bytearray()
        self.writes = True
        """Whether it tells that what has come is written."""
        self.has_ended = False
        self.has_handed_over = False

    def hand_over(self) -> Agent:
        """Wait for WELCOME, and hand the command over."""
        kind, payload = self.frame()
        assert (kind, payload[:4]) == (WELCOME, struct.pack("<I", 1))
        self.command.room = 0
        self.command.lines_before = len(self.command.said)
        self.say(HANDOVER, self.command.handover())
        self.has_handed_over = True
        if self.command.generation:
            self.tell_written()
        return self

    def say(self, kind: int, payload: bytes = b"") -> None:
        """Say a frame."""
        self._socket.sendall(struct.pack("<I12x", len(payload) << 8 | kind) + payload)

    def say_bytes(self, data: bytes) -> None:
        """Say what may be no frame. The other side may hang up meanwhile."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def send_stdin(self, data: bytes) -> None:
        """A piece of stdin; none is its end."""
        self.command.stdin += data
        self.command.stdin_ended = not data
        self.say(STDIN, data)

    def signal(self, number: int) -> None:
        """A signal has come."""
        self.command.signals.append(number)
        self.say(SIGNAL, bytes([number]))

    def frame(self) -> tuple[int, bytes]:
        """The next frame; (0, nothing) at the end."""
        while True:
            if len(self._unread) >= 16:
                (first,) = struct.unpack_from("<I12x", self._unread)
                end = 16 + (first >> 8)
                if len(self._unread) >= end:
                    payload = bytes(self._unread[16:end])
                    del self._unread[:end]
                    return first & 255, payload
            try:
                data = self._socket.recv(128 * 1024)
            except ConnectionResetError:
                data = b""
            if not data:
                self.has_ended = True
                return 0, b""
            self._unread += data

    def until(self, holds: Callable[[Command], bool]) -> Command:
        """Hear on until that holds. Raises EOFError where the switchboard ends before."""
        while not holds(self.command):
            kind, payload = self.frame()
            if kind == 0:
                raise EOFError(f"the switchboard has ended: {self.command}")
            self._take(kind, payload)
        return self.command

    def end(self) -> Command:
        """Hear on until its end."""
        found = self.until(lambda command: command.code is not None or command.direct is not None)
        self.close()
        return found

    def drain(self) -> None:
        """Hear what is still there of a switchboard that has ended, and be ready for another one."""
        self.writes = False
        while not self.has_ended:
            self._take(*self.frame())
        self.close()
        self.command.generation += self.has_handed_over

    def close(self) -> None:
        """Go away."""
        self._socket.close()

    def hear(self) -> bool:
        """Hear one frame. Whether there was one."""
        kind, payload = self.frame()
        self._take(kind, payload)
        return kind != 0

    def _take(self, kind: int, payload: bytes) -> None:  # noqa: C901  a table
        command = self.command
        match kind:
            case 2:
                command.direct = payload.decode()
            case 3:
                command.kept = payload
            case 4:
                command.output += payload
            case 5:
                command.errors += payload
            case 6:
                command.said.append(payload.decode().removeprefix("mpirt-rsh: ").removesuffix("\n"))
            case 7:
                command.room = int.from_bytes(payload, "little")
            case 8:
                taken = int.from_bytes(payload, "little")
                command.stdin, command.stdin_at = command.stdin[taken - command.stdin_at :], taken
            case 9:
                command.code = payload[0]
            case 10:
                command.follows = True
        if kind in (OUT, ERR, SAY) and self.writes and not self.has_ended:
            self.tell_written()

    def tell_written(self) -> None:
        """Say that all is written."""
        command = self.command
        numbers = len(command.output), len(command.errors), len(command.said) - command.lines_before
        self.say(WRITTEN, struct.pack("<QQQ", *numbers))
