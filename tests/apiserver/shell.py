"""
A pod whose exec is real: the command that the URL asks for runs as a local process with real pipes.

Owns: the Shell value, which says how the session between the process and the client goes wrong, and the loop that
carries it out. What a container runtime does is done here too: when the client is lost, the process is not killed
but its stdin ends; and the status comes once the process has ended and nobody holds its output open any more.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import IO, Any

from tests.apiserver import frames
from tests.apiserver.channel import CLOSE_CHANNEL, STDERR, STDIN, STDOUT, V5, Channel, exit_status
from tests.apiserver.connection import Gone
from tests.apiserver.frames import BINARY, CONTINUATION, frame
from tests.apiserver.processes import MARK, kill_all, marked, session_members
from tests.apiserver.waiting import ready

# A runtime's messages carry at most this much.
_LARGEST = 32 * 1024
# Neither a known opcode nor a sane length.
_GARBAGE = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" + b"not a frame"


class End(Enum):
    """A way for a session to end before its time."""

    CLOSE = "close frame, no status"
    EOF = "connection closed, no close frame"
    RESET = "connection reset"
    HANG = "half-open"
    GARBAGE = "bytes that are no frames"

    def happen(self, channel: Channel) -> None:
        match self:
            case End.CLOSE:
                channel.close()
            case End.EOF:
                channel.connection.close()
            case End.RESET:
                channel.connection.reset()
            case End.HANG:
                channel.connection.hang()
            case End.GARBAGE:
                channel.raw(_GARBAGE)
                channel.connection.hang()


@dataclass(frozen=True)
class Cut:
    """When the output on a channel comes to hold `at`, the session ends so, just before that is passed on."""

    at: bytes
    end: End
    channel: int = STDERR
    after: bool = False
    """Pass it on first."""


@dataclass(frozen=True)
class Shell:
    """An exec that runs its command, and what is wrong with the session."""

    sh: str = ""
    """What to run where the command says /bin/sh."""
    environ: tuple[tuple[str, str], ...] = (("PATH", "/usr/local/bin:/usr/bin:/bin"),)
    split: int = _LARGEST
    """Output comes in messages of at most so many bytes."""
    repeat: bool = False
    """Every message of output comes twice."""
    fragment: bool = False
    """Every message of output comes in two fragments."""
    status: Mapping[str, Any] | bytes | None = None
    """What to say at the end instead of how it ended; b"" says nothing."""
    end: End | None = None
    """How to end, after the status, instead of with a close frame of code 1000."""
    close_code: int | None = 1000
    cut: Cut | None = None
    answers_pings: bool = True

    def serve(self, channel: Channel, mark: str) -> Session:
        """Begin the process; the session's run() does the rest. All that it starts has the mark."""
        channel.answers_pings = self.answers_pings
        return Session(self, channel, mark)


class Session:
    """One process and the client that started it."""

    def __init__(self, shell: Shell, channel: Channel, mark: str) -> None:
        command = [shell.sh if shell.sh and word == "/bin/sh" else word for word in channel.command]
        self.channel = channel
        self.finished = threading.Event()
        """Set when the process has ended and its output is at its end."""
        self._shell, self._mark = shell, mark
        self._process = subprocess.Popen(
            command,
            env=dict(shell.environ) | {MARK: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._outputs = {_fileno(self._process.stdout): STDOUT, _fileno(self._process.stderr): STDERR}
        self._stdin: int | None = _fileno(self._process.stdin)
        os.set_blocking(self._stdin, False)
        self._for_stdin = bytearray()
        self._ends_stdin = False
        self._seen = {STDOUT: b"", STDERR: b""}
        self._ended = os.pidfd_open(self._process.pid)
        self._orders: deque[End] = deque()
        self._woken, self._wake = os.pipe()
        self._is_connected = True

    @property
    def returncode(self) -> int | None:
        """The process's own, once it has ended."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """The process's, which leads a session of its own."""
        return self._process.pid

    def processes(self) -> list[int]:
        """What is alive of the commands of this server, their keepers, and everything that they started."""
        return sorted({*session_members(self.pid), *marked(self._mark)})

    def end(self, how: End) -> None:
        """Let the session end so, now. From any thread."""
        self._orders.append(how)
        os.write(self._wake, b"!")

    def run(self) -> None:
        """Carry bytes until both sides are done."""
        try:
            while self._outputs or self._process.poll() is None:
                try:
                    self._turn()
                except Gone:
                    self._lose_client()
            self._finish()
        finally:
            self.finished.set()

    def kill(self) -> None:
        """End what is in the process's session; run() ends soon after."""
        kill_all({self.pid})

    def release(self) -> None:
        """Leave nothing open, once run() has ended."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        for descriptor in (self._woken, self._wake, self._ended):
            os.close(descriptor)

    def _turn(self) -> None:
        reads: list[int] = [*self._outputs, self._woken]
        # While the process does not read its stdin nothing is read from the client, its pings neither.
        if self._is_connected and not self._for_stdin:
            reads.append(self.channel.connection.socket.fileno())
        writes = [self._stdin] if self._for_stdin and self._stdin is not None else []
        if self._process.returncode is None:
            reads.append(self._ended)
        readable, writable = ready(reads, writes)
        if self._ended in readable:
            # Which is seen once: what it has left may have its output open for long.
            self._process.poll()
        if self._woken in readable:
            os.read(self._woken, 1)
            self._orders.popleft().happen(self.channel)
            raise Gone
        if writable:
            self._write_stdin()
        for descriptor in [found for found in reads if found in readable and found in self._outputs]:
            self._pass_on(descriptor)
        if self._is_connected and self.channel.connection.socket.fileno() in readable:
            self._take_frames()

    def _take_frames(self) -> None:
        for found in self.channel.drain():
            if found.opcode == frames.CLOSE:
                raise Gone
            channel, data = (found.payload[0], found.payload[1:]) if found.payload else (STDIN, b"")
            if channel == STDIN and self._stdin is not None:
                self._for_stdin += data
            elif channel == CLOSE_CHANNEL and self.channel.protocol == V5:
                if data != bytes([STDIN]):
                    self.channel.complaints.append(
                        f"a CLOSE message of {len(data) + 1} bytes: the server drops that"
                    )
                    raise Gone
                self._ends_stdin = True
        self._write_stdin()

    def _write_stdin(self) -> None:
        try:
            while self._for_stdin and self._stdin is not None:
                sent = os.write(self._stdin, self._for_stdin[:65536])
                del self._for_stdin[:sent]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._for_stdin.clear()
            self._close_stdin()
        if self._ends_stdin:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._stdin = None

    def _pass_on(self, descriptor: int) -> None:
        channel = self._outputs[descriptor]
        data = os.read(descriptor, _LARGEST)
        if not data:
            del self._outputs[descriptor]
            # So does containerd, though the process may still read.
            self._for_stdin.clear()
            self._close_stdin()
        if not data or not self._is_connected:
            return
        cut = self._shell.cut
        self._seen[channel] += data if cut is not None else b""
        is_cut = cut is not None and cut.channel == channel and cut.at in self._seen[channel]
        if cut is None or not is_cut or cut.after:
            self._send(channel, data)
        if cut is not None and is_cut:
            if channel == STDERR:
                self._pass_on_what_came_before()
            cut.end.happen(self.channel)
            raise Gone

    def _pass_on_what_came_before(self) -> None:
        """What was written on stdout before that: pipes are looked at one after the other."""
        open_ones = [found for found, channel in self._outputs.items() if channel == STDOUT]
        for descriptor in ready(open_ones, within=0)[0]:
            self._send(STDOUT, os.read(descriptor, _LARGEST))

    def _send(self, channel: int, data: bytes) -> None:
        for start in range(0, len(data), self._shell.split):
            payload = bytes([channel]) + data[start : start + self._shell.split]
            if self._shell.fragment:
                half = len(payload) // 2
                sent = frame(BINARY, payload[:half], last=False) + frame(CONTINUATION, payload[half:])
            else:
                sent = frame(BINARY, payload)
            self.channel.raw(sent * (2 if self._shell.repeat else 1))

    def _lose_client(self) -> None:
        """What the runtime does: the process goes on, its stdin ends, nobody reads its output."""
        if not self.channel.connection.closed:
            self.channel.connection.close()
        self._is_connected = False
        self._for_stdin.clear()
        self._close_stdin()

    def _finish(self) -> None:
        code = self._process.wait()
        if not self._is_connected:
            return
        with contextlib.suppress(Gone):
            said = self._shell.status
            said = exit_status(code if code >= 0 else 128 - code) if said is None else said
            if said:
                self.channel.status(said)
            if self._shell.end is not None:
                self._shell.end.happen(self.channel)
            else:
                self.channel.close(self._shell.close_code)


def _fileno(pipe: IO[bytes] | None) -> int:
    return -1 if pipe is None else pipe.fileno()
