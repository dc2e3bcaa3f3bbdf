"""
The switchboard's side of docs/switchboard.md, as little of it as the tests need.

Owns: frames as bytes, a listening socket, and agents that find it. Whatever is waited for has a deadline.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

DEADLINE = 30.0
WINDOW = 256 * 1024
STDIN_KEPT = 1024 * 1024
# The type and the length; no frame here has an epoch or a number.
HEADER = struct.Struct("<I12x")


class Kind(IntEnum):
    """A frame's type."""

    WELCOME = 1
    DIRECT = 2
    KEEP = 3
    OUT = 4
    ERR = 5
    SAY = 6
    ROOM = 7
    TAKEN = 8
    FINISH = 9
    FOLLOW = 10
    SETTLED = 13
    HANDOVER = 65
    STDIN = 66
    STDIN_BROKEN = 67
    SIGNAL = 68
    WRITTEN = 69
    BROKEN = 70
    SETTLED_REQUEST = 73


@dataclass(frozen=True, slots=True)
class Handover:
    """What HANDOVER says."""

    flags: int
    generation: int
    out: int
    err: int
    offset: int
    signals: bytes
    keep: bytes
    stdin: bytes
    called: bytes
    folder: bytes
    words: list[bytes]
    environment: list[bytes]

    @classmethod
    def read(cls, payload: bytes) -> Handover:
        flags, generation, out, err, offset = struct.unpack_from("<BIQQQ", payload)
        rest = payload[29:]
        parts = []
        for _ in range(3):
            (length,) = struct.unpack_from("<I", rest)
            parts.append(rest[4 : 4 + length])
            rest = rest[4 + length :]
        words, variables = struct.unpack_from("<II", rest)
        strings = rest[8:].split(b"\0")
        assert strings.pop() == b""
        called, folder, *others = strings
        assert len(others) == words + variables
        signals, keep, stdin = parts
        return cls(
            flags,
            generation,
            out,
            err,
            offset,
            signals,
            keep,
            stdin,
            called,
            folder,
            others[:words],
            others[words:],
        )


def frame(kind: Kind | int, payload: bytes = b"") -> bytes:
    return HEADER.pack(len(payload) << 8 | kind) + payload


def number(value: int) -> bytes:
    return struct.pack("<Q", value)


class Gone(Exception):
    """The agent has ended the connection."""


class Connection:
    """One agent's connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._deadline = time.monotonic() + DEADLINE
        self._came = bytearray()

    def send(self, kind: Kind | int, payload: bytes = b"") -> None:
        self.send_bytes(frame(kind, payload))

    def send_bytes(self, data: bytes) -> None:
        self.sock.settimeout(DEADLINE)
        self.sock.sendall(data)

    def _some(self) -> None:
        self.sock.settimeout(DEADLINE)
        try:
            data = self.sock.recv(1 << 20)
        except ConnectionError as error:
            raise Gone from error
        if not data:
            raise Gone
        self._came += data

    def receive(self) -> tuple[Kind, bytes]:
        """The next frame."""
        while len(self._came) < HEADER.size:
            self._some()
        (first,) = HEADER.unpack_from(self._came)
        end = HEADER.size + (first >> 8)
        while len(self._came) < end:
            self._some()
        payload = bytes(self._came[HEADER.size : end])
        del self._came[:end]
        return Kind(first & 255), payload

    def expect(self, kind: Kind) -> bytes:
        """The next frame, which is of this kind."""
        came, payload = self.receive()
        assert came is kind, (came, payload[:80])
        return payload

    def handover(self) -> Handover:
        return Handover.read(self.expect(Kind.HANDOVER))

    def written(self) -> tuple[int, int, int]:
        out, err, says = struct.unpack("<QQQ", self.expect(Kind.WRITTEN))
        return out, err, says

    def written_up_to(self, *counts: int) -> None:
        while self.written() != counts:
            pass

    def stdin(self, length: int) -> bytes:
        """So many bytes of it."""
        came = b""
        while len(came) < length:
            payload = self.expect(Kind.STDIN)
            assert payload, came
            came += payload
        return came

    def ends(self) -> bool:
        """Whether the agent ends it; what still comes is dropped."""
        with contextlib.suppress(Gone):
            while True:
                self.receive()
        return True

    def is_quiet(self) -> bool:
        """Whether nothing has come up to now, whole or not."""
        return not self._came and not select.select([self.sock], [], [], 0)[0]

    def waiting(self) -> int:
        """How many bytes have come that nobody has read."""
        return int.from_bytes(fcntl.ioctl(self.sock, termios.FIONREAD, bytes(4)), "little")

    def begin(self, keep: bytes = b"kept") -> Handover:
        """WELCOME, HANDOVER, KEEP."""
        self.send(Kind.WELCOME, struct.pack("<II", 1, os.getpid()))
        told = self.handover()
        if keep:
            self.send(Kind.KEEP, keep)
        return told


@dataclass
class Ground:
    """A folder with a package that stands in for mpirt, and a place for a socket."""

    root: Path
    program: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)
    listener: socket.socket | None = None

    @property
    def place(self) -> Path:
        return self.root / "place"

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "MPIRT_SWITCHBOARD": str(self.place), "GROUND": str(self.root)}

    def listen(self) -> None:
        """Be the switchboard."""
        self.place.mkdir(mode=0o700, exist_ok=True)
        (self.place / "socket").unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.place / "socket"))
        self.listener.listen(1000)
        self.listener.settimeout(DEADLINE)
        self.sockets.append(self.listener)

    def accept(self) -> Connection:
        assert self.listener is not None
        sock, _ = self.listener.accept()
        self.sockets.append(sock)
        return Connection(sock)

    def words(self, *words: str, program: Path | None = None) -> list[str | Path]:
        called = words or ("worker-0", "true")
        return [program or self.program, "--python", sys.executable, str(self.root), "mpirt-rsh", *called]

    def start(
        self, *words: str, environment: Mapping[str, str] | None = None, program: Path | None = None, **more: Any
    ) -> subprocess.Popen[bytes]:
        """An agent; its three streams are pipes, if nothing else is said."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            self.words(*words, program=program),
            env={**self.environment, **(environment or {})},
            bufsize=0,
            **{**pipes, **more},
        )
        self.processes.append(process)
        return process

    def connected(self, *words: str, **more: Any) -> tuple[subprocess.Popen[bytes], Connection]:
        """An agent whose command is under way."""
        process = self.start(*words, **more)
        connection = self.accept()
        connection.begin()
        return process, connection

    def board(self, code: str) -> None:
        """What a switchboard does that agents start: `listener` is there, and `note` writes a line."""
        (self.root / "board.py").write_text(code, encoding="utf-8")

    def private(self, code: str) -> None:
        """What a private one does: `agent` is the connection to it."""
        (self.root / "private.py").write_text(code, encoding="utf-8")

    def handed_over(self) -> Handover:
        """What the last private one has got."""
        return Handover.read((self.root / "handover").read_bytes())

    def notes(self) -> list[str]:
        """The lines that switchboards have written."""
        file = self.root / "notes"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(DEADLINE)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        for sock in self.sockets:
            sock.close()


BOARD = """
import os, socket, struct, sys, time
def main():
    root = sys.path[0]
    def note(line):
        fd = os.open(f"{root}/notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(fd, f"{line}\\n".encode())
        os.close(fd)
    def frame(kind, payload=b""):
        return struct.pack("<I12x", len(payload) << 8 | kind) + payload
    def receive(sock):
        def exactly(size):
            data = b""
            while len(data) < size:
                more = sock.recv(size - len(data))
                if not more:
                    raise EOFError
                data += more
            return data
        (first,) = struct.unpack("<I12x", exactly(16))
        return first & 255, exactly(first >> 8)
    name = "private.py" if os.environ["MPIRT_SWITCHBOARD"] == "off" else "board.py"
    given = socket.socket(fileno=3)
    given.setblocking(True)
    with open(f"{root}/{name}") as file:
        code = compile(file.read(), name, "exec")
    exec(code, dict(listener=given, agent=given, note=note, frame=frame, receive=receive, root=root))
    return 0
"""
# A private one: notes what it gets, and ends the command with 77.
PRIVATE = """
import os, struct
agent.sendall(frame(1, struct.pack("<II", 1, os.getpid())))
_, payload = receive(agent)
with open(f"{root}/handover", "wb") as file:
    file.write(payload)
agent.sendall(frame(9, bytes([77])))
"""
# Serves one agent after the other: its command ends with 7.
SERVE = """
import os, struct
note(os.getpid())
listener.settimeout(3)
try:
    while True:
        sock, _ = listener.accept()
        sock.sendall(frame(1, struct.pack("<II", 1, os.getpid())))
        receive(sock)
        sock.sendall(frame(9, b"\\7"))
        sock.close()
except TimeoutError:
    pass
"""


def make_ground(root: Path, program: Path) -> Ground:
    """The package that agents start something of, and nothing that listens."""
    files = {"private.py": PRIVATE, "mpirt/cli/switchboard.py": BOARD}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for folder in ("mpirt", "mpirt/cli"):
        (root / folder / "__init__.py").touch()
    return Ground(root, program)


def read(process: subprocess.Popen[bytes], length: int, stream: str = "stdout") -> bytes:
    """So many bytes of an agent's output."""
    pipe = getattr(process, stream)
    data = b""
    while len(data) < length:
        assert select.select([pipe], [], [], DEADLINE)[0], data[-80:]
        more = os.read(pipe.fileno(), length - len(data))
        assert more, data[-80:]
        data += more
    return data


def chunks(data: bytes, size: int = 65536) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    """Code, rest of stdout and of stderr."""
    out, err = process.communicate(timeout=DEADLINE)
    return process.returncode, out or b"", err or b""


def until(question: Any, what: str) -> Any:
    """Ask until the answer is true."""
    deadline = time.monotonic() + DEADLINE
    while not (answer := question()):
        assert time.monotonic() < deadline, what
        select.select([], [], [], 0.01)
    return answer
