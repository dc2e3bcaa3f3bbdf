"""
Containers for tests: processes in namespaces of their own, which others enter as an exec does. They need root.

Owns: making one, entering it, and the end of all that is in it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mpirt.rsh.protocol.entrance import BOOTSTRAP
from testbed.kube.wait import until
from tests.unit.keeper.client import DEADLINE, Frame, Kind, Link, Start, new_nonce, stat_fields

Shell = subprocess.Popen[bytes]
Words = tuple[str, ...]

OWN_PLACES = "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && mount -t tmpfs none /dev/shm"
"""With the programs in /tmp, but no place for a session there."""
_WAIT = "echo; read x"
_OWN: Words = ("unshare", "--mount", "--pid", "--fork", "--mount-proc")


class Container:
    """Processes that share a mount namespace, and mostly a pid namespace that is theirs alone."""

    def __init__(self, stack: ExitStack, make: Words = _OWN, *, places: str = OWN_PLACES) -> None:
        self._stack = stack
        main = self._run(*make, "/bin/sh", "-c", f"{places} && {_WAIT}")
        assert main.stdout is not None
        main.stdout.readline()
        self.first = child_of(main.pid)

    def _run(self, *words: str | Path) -> Shell:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._stack.enter_context(process)
        # From the last to the first: the end of the first one is the end of all.
        self._stack.callback(process.kill)
        return process

    def beside(self) -> Container:
        """Another one in the same pid namespace, as in a pod with shareProcessNamespace."""
        enter = ("nsenter", "--mount", "--pid", f"--target={self.first}")
        return Container(self._stack, (*enter, "unshare", "--mount"))

    def sidecar(self, *, shares_processes: bool = False) -> Container:
        """Another one of the same pod: they have /dev/shm in common."""
        if shares_processes:
            make: Words = ("nsenter", "--mount", "--pid", f"--target={self.first}", "unshare", "--mount")
        else:
            make = ("nsenter", "--mount", f"--target={self.first}", *_OWN)
        return Container(self._stack, make, places="true")

    def enter(self, *words: str | Path) -> list[str | Path]:
        """The words that run these inside."""
        return ["nsenter", "--mount", "--pid", f"--target={self.first}", *words]

    def shell(self, words: Words = BOOTSTRAP) -> Shell:
        """An exec that waits for its first words. It is there once it is what it is to be."""
        shell = self._run(*self.enter(*words))
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
        awaited = "\0".join(words).encode() + b"\0"
        until(
            lambda: any(_words(pid) == awaited for pid in children.read_text().split()),
            within=DEADLINE, what="the shell",
        )  # fmt: skip
        return shell

    def session(self, keeper: Path, *, nonce: str | None = None, prefix: Words = ()) -> Session:
        """A session without a command."""
        nonce = nonce or new_nonce()
        link = Link(self.enter(*prefix, keeper, "bridge", nonce))
        self._stack.callback(link.cut)
        return Session(link, nonce)

    def attach(self, keeper: Path, session: Session, *, prefix: Words = ()) -> None:
        """Another connection to it."""
        link = Link(self.enter(*prefix, keeper, "attach", session.nonce))
        self._stack.callback(link.cut)
        assert b" KEEPER " in link.greeting()

    def run(self, keeper: Path) -> None:
        """A command that a keeper holds, until the keeper has ended."""
        session = self.session(keeper)
        session.start("/bin/true")
        session.end()


class Session:
    """One session, with the pids of its processes outside of the container."""

    def __init__(self, link: Link, nonce: str) -> None:
        self.nonce = nonce
        self.link = link
        self.greeting = link.greeting()
        self.bridge = child_of(link.process.pid)
        self.keeper = child_of(self.bridge)
        self.output = b""
        self._said = 0

    def start(self, *argv: str, **settings: Any) -> None:
        """Start the command."""
        start = b"S" + bytes(Start(argv, **settings))
        self.link.send(Frame(Kind.ATTACH, 1, 0, bytes(16)), Frame(Kind.CONTROL, 1, 1, start))
        self._until(Kind.STARTED)

    def say(self, data: bytes) -> None:
        """Write to the command's stdin."""
        self.link.send(Frame(Kind.STDIN, 1, self._said, data))
        self._said += len(data)

    def line(self) -> str:
        """The command's next line."""
        while b"\n" not in self.output:
            self._until(Kind.OUT)
        line, _, self.output = self.output.partition(b"\n")
        return line.decode()

    def end(self, number: int | None = None) -> None:
        """Wait for the command's end, which a signal may cause, and for the keeper's."""
        if number is not None:
            self.link.send(Frame(Kind.CONTROL, 1, 2, b"E" + struct.pack("<BI", number, 0)))
        self.exited()
        self.link.send(Frame(Kind.DONE, 1, 0))
        self.link.process.wait(DEADLINE)

    def exited(self) -> None:
        """Wait for the command's end."""
        self._until(Kind.EXIT)

    def abandon(self) -> None:
        """Kill the bridge, and then the keeper: nobody ends what the command has started."""
        keeper = os.pidfd_open(self.keeper)
        kill(self.bridge)
        signal.pidfd_send_signal(keeper, signal.SIGKILL)
        os.close(keeper)
        until(lambda: not is_alive(self.keeper), within=DEADLINE, what="the keeper's end")

    def _until(self, kind: Kind) -> None:
        while (frame := self.link.receive()).kind is not kind:
            self._take(frame)
        self._take(frame)

    def _take(self, frame: Frame) -> None:
        if frame.kind is Kind.OUT:
            self.output += frame.payload


def child_of(pid: int) -> int:
    """The only one."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def is_alive(pid: int) -> bool:
    """Whether it has not ended; a zombie has."""
    with contextlib.suppress(OSError):
        return stat_fields(pid)[0] not in "ZX"
    return False


def kill(pid: int) -> None:
    """Kill it, and wait for its end."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_alive(pid), within=DEADLINE, what="its end")


def _words(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def within(seconds: float, happened: Callable[[], bool]) -> bool:
    """Whether something outside came about in time."""
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
