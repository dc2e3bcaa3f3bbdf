"""
The agent's side of the keeper's frames, as little of it as the tests need.

Owns: frames as bytes, and a connection through `keeper bridge` or `keeper attach` over pipes. Whatever is waited
for has a deadline; what isn't asked for is kept, in the order in which it came.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Self

HEADER = struct.Struct("<IIQ")
LONGEST = 32768
DEADLINE = 20.0


class Kind(IntEnum):
    """A frame's type."""

    ATTACH = 1
    CONTROL = 2
    STDIN = 3
    STDIN_END = 4
    ACK = 5
    DONE = 6
    BEAT = 7
    FENCE = 8
    USAGE = 9
    ATTACHED = 33
    STARTED = 34
    TAKEN = 35
    CONTROLLED = 36
    OUT = 37
    ERR = 38
    EXIT = 39
    BEAT_BACK = 40
    FAILED = 41
    USAGE_BACK = 42
    FENCED = 43


class By(IntEnum):
    """Who has ended a command, as EXIT tells it."""

    ITSELF = 0
    LEASE = 1
    END = 2
    SIGNAL = 3


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame."""

    kind: Kind
    epoch: int
    number: int
    payload: bytes = b""

    def __bytes__(self) -> bytes:
        return HEADER.pack(len(self.payload) << 8 | self.kind, self.epoch, self.number) + self.payload


@dataclass(frozen=True, slots=True)
class Ended:
    """What EXIT says."""

    was_killed: bool
    code: int
    was_held: bool
    by: By
    out: int
    err: int


@dataclass(frozen=True, slots=True)
class Start:
    """What START says."""

    argv: Sequence[bytes | str]
    environment: Mapping[str, str] = field(default_factory=dict)
    has_stdin: bool = False
    lease: int = 30_000
    grace: int = 5_000
    job: str = ""
    attempt: int = 0
    launcher: int = 0

    def __bytes__(self) -> bytes:
        words = [word.encode() if isinstance(word, str) else word for word in self.argv]
        variables = [f"{name}={value}".encode() for name, value in self.environment.items()]
        head = struct.pack("<IIBQQ", self.lease, self.grace, self.has_stdin, self.attempt, self.launcher)
        counts = struct.pack("<HH", len(words), len(variables))
        return head + counts + b"".join(text + b"\0" for text in (self.job.encode(), *words, *variables))


class Broken(Exception):
    """The connection has ended."""


def new_nonce() -> str:
    """A session's name that no other has."""
    return secrets.token_hex(8)


def folders(nonce: str) -> list[Path]:
    """The folders of that session that exist: one, or none."""
    roots = dict.fromkeys((os.environ.get("TMPDIR", "/tmp"), "/tmp", "/dev/shm"))
    return [folder for root in roots if (folder := Path(root, f"mpirt-{nonce}")).exists()]


def socket_of(nonce: str) -> str:
    """The path of its socket."""
    [folder] = folders(nonce)
    return str(folder / "socket")


class Link:
    """One connection: a bridge's process, its stdin and its stdout."""

    def __init__(self, command: Sequence[str | Path], *, environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._to = self.process.stdin.fileno()
        self._from = self.process.stdout.fileno()
        os.set_blocking(self._to, False)
        self._came = bytearray()
        self.is_closed = False

    def greeting(self) -> bytes:
        """The first line."""
        while b"\n" not in self._came:
            self._read_some(time.monotonic() + DEADLINE)
        line, _, rest = bytes(self._came).partition(b"\n")
        self._came[:] = rest
        return line + b"\n"

    def send(self, *frames: Frame | bytes) -> None:
        """Write them all, and read meanwhile: the keeper must be able to answer."""
        data = memoryview(b"".join(bytes(frame) for frame in frames))
        deadline = time.monotonic() + DEADLINE
        while data:
            readable, writable, _ = select.select(
                [self._from], [self._to], [], max(0, deadline - time.monotonic())
            )
            assert readable or writable, "the bridge takes nothing"
            if readable:
                self._read_some(deadline)
            if writable:
                try:
                    data = data[os.write(self._to, data) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError as error:
                    raise Broken from error

    def say(self, *frames: Frame) -> None:
        """Write them, few as they are, and read nothing."""
        assert os.write(self._to, b"".join(map(bytes, frames))) == HEADER.size * len(frames)

    def receive(self, *, within: float = DEADLINE) -> Frame:
        """The next frame; Broken at the end of the connection, TimeoutError when nothing comes."""
        deadline = time.monotonic() + within
        while (frame := self._frame()) is None:
            self._read_some(deadline)
        return frame

    def close(self) -> None:
        """The agent closes its connection. A keeper's own bridge lives as long as the keeper."""
        self.is_closed = True
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def cut(self) -> None:
        """The bridge dies."""
        self.process.send_signal(signal.SIGKILL)
        self.close()
        self.process.wait(DEADLINE)

    def _frame(self) -> Frame | None:
        if len(self._came) < HEADER.size:
            return None
        first, epoch, number = HEADER.unpack_from(self._came)
        kind, length = first & 255, first >> 8
        assert length <= LONGEST
        end = HEADER.size + length
        if len(self._came) < end:
            return None
        payload = bytes(self._came[HEADER.size : end])
        del self._came[:end]
        return Frame(Kind(kind), epoch, number, payload)

    def _read_some(self, deadline: float) -> None:
        readable, _, _ = select.select([self._from], [], [], max(0, deadline - time.monotonic()))
        if not readable:
            raise TimeoutError("the keeper says nothing")
        data = os.read(self._from, 1 << 20)
        if not data:
            raise Broken
        self._came += data


class Agent:
    """
    A session as an agent holds it: what was received and acknowledged, over however many connections.

    Checks what every frame promises: the epoch, and that output comes in order without a gap.
    """

    def __init__(
        self,
        keeper: Path,
        *,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        nonce: str | None = None,
    ) -> None:
        self.keeper = keeper
        self.nonce = nonce or new_nonce()
        self.epoch = 0
        self.controls = 0
        self.acknowledges = True
        self.streams = {Kind.OUT: bytearray(), Kind.ERR: bytearray()}
        self.taken = 0
        self.controls_done = 0
        self.seen: list[Frame] = []
        self._prefix = prefix
        self._links: list[Link] = []
        self._environment = environment
        self.link = self.call("bridge")
        assert read_greeting(self.link.greeting(), self.nonce)[0] == "KEEPER 1"
        bridge = self.link.process.pid
        self.keeper_pid = int(Path(f"/proc/{bridge}/task/{bridge}/children").read_text())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self.link.is_closed:
                self._leave()
        except (Broken, TimeoutError):
            pass
        finally:
            for link in self._links:
                link.cut()
            self._remove_what_is_left()

    def _leave(self) -> None:
        if not any(frame.kind in (Kind.EXIT, Kind.FAILED) for frame in self.seen):
            self.controls = max(self.controls, self.controls_done)
            self.send(self.control(b"E\x09\0\0\0\0"))
            self.until(Kind.EXIT, Kind.FAILED, within=5)
        self.done()

    def _remove_what_is_left(self) -> None:
        """Of a session whose test failed, or is about a broken one."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if self.nonce.encode() in Path(f"/proc/{self.keeper_pid}/cmdline").read_bytes():
                os.kill(self.keeper_pid, signal.SIGKILL)
        if {frame.kind for frame in self.seen} & {Kind.STARTED, Kind.EXIT} == {Kind.STARTED}:
            # Its own group still has its number, or no group has.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.seen_pid(), signal.SIGKILL)
        for folder in folders(self.nonce):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def out(self) -> bytes:
        """stdout so far."""
        return bytes(self.streams[Kind.OUT])

    @property
    def err(self) -> bytes:
        """stderr so far."""
        return bytes(self.streams[Kind.ERR])

    def seen_pid(self) -> int:
        """The command's, as STARTED tells it."""
        return next(frame.number for frame in self.seen if frame.kind is Kind.STARTED)

    def call(self, verb: str) -> Link:
        """Run the keeper as an exec would."""
        link = Link([*self._prefix, self.keeper, verb, self.nonce], environment=self._environment)
        self._links.append(link)
        return link

    def attach(self, *, again: bool = False) -> Frame:
        """Say ATTACH, on a new connection if `again`; the answer."""
        if again:
            self.link = self.call("attach")
            assert read_greeting(self.link.greeting(), self.nonce)[0] == "KEEPER 1"
        self.epoch += 1
        self.send(self.frame(Kind.ATTACH, payload=self._received()))
        return self.until(Kind.ATTACHED)

    def start(self, *argv: str | bytes, **settings: object) -> Frame:
        """Say START in one part; the STARTED or FAILED that answers it."""
        if not self.epoch:
            self.attach()
        self.send(self.control(b"S" + bytes(Start(argv, **settings))))  # type: ignore[arg-type]  # its own names
        return self.until(Kind.STARTED, Kind.FAILED)

    def frame(self, kind: Kind, number: int = 0, payload: bytes = b"") -> Frame:
        """A frame of this connection."""
        return Frame(kind, self.epoch, number, payload)

    def control(self, payload: bytes) -> Frame:
        """The next CONTROL."""
        self.controls += 1
        return self.frame(Kind.CONTROL, self.controls, payload)

    def send(self, *frames: Frame | bytes) -> None:
        """Over the present connection."""
        self.link.send(*frames)

    def end(self, number: int = signal.SIGTERM, *, grace: int = 10_000) -> None:
        """Say END."""
        self.send(self.control(b"E" + bytes([number]) + struct.pack("<I", grace)))

    def kill(self, number: int) -> None:
        """Give the command a signal."""
        self.send(self.control(b"K" + bytes([number])))

    def frames(self, *, within: float = DEADLINE) -> Iterator[Frame]:
        """All that comes, dealt with."""
        while True:
            frame = self.link.receive(within=within)
            self._take(frame)
            yield frame

    def until(self, *kinds: Kind, within: float = DEADLINE) -> Frame:
        """The next frame of one of these kinds."""
        return next(frame for frame in self.frames(within=within) if frame.kind in kinds)

    def until_true(self, is_so: Callable[[], bool]) -> None:
        """Deal with frames until it is so."""
        frames = self.frames()
        while not is_so():
            next(frames)

    def until_exit(self) -> Ended:
        """How the command ended, once all its output is here."""
        ended = read_exit(self.until(Kind.EXIT))
        assert (ended.out, ended.err) == (len(self.out), len(self.err))
        return ended

    def until_broken(self) -> None:
        """The keeper closes this connection."""
        try:
            for _ in self.frames():
                pass
        except Broken:
            self.link.close()

    def done(self) -> None:
        """Answer EXIT or FAILED, and see the bridge end."""
        self.send(self.frame(Kind.DONE))
        self.until_broken()
        self.link.process.wait(DEADLINE)

    def _received(self) -> bytes:
        return struct.pack("<QQ", *map(len, self.streams.values()))

    def _take(self, frame: Frame) -> None:
        assert frame.epoch == self.epoch
        self.seen.append(frame)
        if frame.kind in self.streams:
            stream = self.streams[frame.kind]
            assert frame.number == len(stream)
            stream += frame.payload
            if self.acknowledges:
                self.send(self.frame(Kind.ACK, payload=self._received()))
        elif frame.kind is Kind.TAKEN:
            assert frame.number >= self.taken
            self.taken = frame.number
        elif frame.kind is Kind.CONTROLLED:
            self.controls_done = frame.number
        elif frame.kind is Kind.ATTACHED:
            self.controls_done = frame.number
            (self.taken,) = struct.unpack("<Q", frame.payload[1:])


def stat_fields(pid: int) -> list[str]:
    """What /proc/PID/stat says behind the process's name: its state first."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def read_greeting(line: bytes, nonce: str) -> tuple[str, int]:
    """The first line: what it says, and when the container's first process started."""
    begin, nothing, rest = line.decode().partition(f"\001mpirt-{nonce} ")
    assert (begin, bool(nothing), rest[-1:]) == ("", True, "\n")
    word, _, start = rest.rstrip("\n").rpartition(" ")
    return word, int(start)


def read_exit(frame: Frame) -> Ended:
    """EXIT's payload."""
    was_killed, code, was_held, by, out, err = struct.unpack("<BBBBQQ", frame.payload)
    return Ended(bool(was_killed), code, bool(was_held), By(by), out, err)
