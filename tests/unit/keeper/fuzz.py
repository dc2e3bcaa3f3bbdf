"""
Random and mutated frames for a keeper that holds a command: `python -m tests.unit.keeper.fuzz --inputs 1000000`.

Owns: making inputs out of a seed, and the check that the keeper survives them. An input is what one connection
says. What a keeper rightly obeys is left out: a correct END or signal, and an epoch after which no other fits.
The keeper is compiled by gcc with the address and undefined-behaviour sanitizers where it can be.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.unit.keeper.client import HEADER, Agent, Frame, Kind, Start, socket_of

SOURCES = Path(__file__).resolve().parents[3] / "images/keeper"
COMPILED = SOURCES.parents[1] / "build/sanitized"
SANITIZED = ("-std=c11", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

# Shows that it lives when it is asked to, and takes all stdin.
COMMAND = (
    "/bin/bash",
    "-c",
    'trap "echo here" USR1; echo ready; cat >/dev/null; while :; do sleep 1000 & wait $!; done',
)
EPOCHS_A_STEP = 3
TELLING_NUMBERS = (0, 1, 2, 3, 15, 16, 255, 32767, 32768, 65535, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)
TELLING_LENGTHS = (0, 1, 2, 6, 9, 16, 17, 511, 512, 5000)


def compile_keeper(folder: Path) -> Path:
    """A keeper with sanitizers; without gcc, as it is shipped."""
    with contextlib.suppress(FileNotFoundError, subprocess.CalledProcessError):
        return _sanitized()
    subprocess.run([sys.executable, SOURCES.parent / "build.py", "keeper", folder, "amd64"], check=True)
    return folder / "keeper-1-amd64"


def _sanitized() -> Path:
    """It is compiled again when the compiler or a source has changed."""
    sources = [path for folder in (SOURCES, SOURCES.parent / "common") for path in sorted(folder.glob("*.[ch]"))]
    compiler = subprocess.run(["gcc", "--version"], check=True, capture_output=True).stdout
    parts = [compiler, repr(SANITIZED).encode(), *(path.read_bytes() for path in sources)]
    target = COMPILED / hashlib.sha256(b"\0".join(parts)).hexdigest()
    if not target.exists():
        COMPILED.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}")
        files = [path for path in sources if path.suffix == ".c"]
        subprocess.run(["gcc", *SANITIZED, "-o", fresh, *files], check=True, stderr=subprocess.DEVNULL)
        fresh.rename(target)
    return target


class Inputs:
    """Inputs out of a seed: the same ones each time."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.epoch = 1

    def next(self) -> bytes:
        """What one connection says."""
        chance = self.chance
        frames = [self._attach()] if chance.random() < 0.7 else []
        frames += [self._frame() for _ in range(chance.randrange(4))]
        data = bytearray(b"".join(frames))
        if chance.random() < 0.4:
            self._mutate(data)
        if chance.random() < 0.05:
            data += chance.randbytes(chance.choice(TELLING_LENGTHS))
        return self._harmless(bytes(data))

    def _attach(self) -> bytes:
        self.epoch += self.chance.randrange(EPOCHS_A_STEP)
        received = struct.pack("<QQ", *(self.chance.choice((0, 0, 0, 6, 1 << 40)) for _ in range(2)))
        return bytes(Frame(Kind.ATTACH, self.epoch, 0, received))

    def _frame(self) -> bytes:
        chance = self.chance
        kind = chance.choice(list(Kind))
        number = chance.choice(TELLING_NUMBERS) if chance.random() < 0.8 else chance.getrandbits(64)
        payload = chance.randbytes(chance.choice(TELLING_LENGTHS))
        if kind is Kind.CONTROL and payload:
            payload = chance.choice([b"s", b"S", b"K", b"E", b"?"]) + payload[1:]
        return bytes(Frame(kind, chance.choice((self.epoch, self.epoch, 0)), number, payload))

    def _mutate(self, data: bytearray) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            if data:
                at = self.chance.randrange(len(data))
                data[at] = self.chance.choice((0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1 << self.chance.randrange(8)))
        if self.chance.random() < 0.3:
            del data[self.chance.randrange(len(data) + 1) :]

    def _harmless(self, data: bytes) -> bytes:
        """Up to the first frame that would end the command, or take the last epochs."""
        at = 0
        while at + HEADER.size <= len(data):
            first, epoch, number = HEADER.unpack_from(data, at)
            kind, length = first & 255, first >> 8
            payload = data[at + HEADER.size : at + HEADER.size + length]
            if kind == Kind.ATTACH and epoch > self.epoch:
                return data[:at]
            # 1 was START.
            if kind == Kind.CONTROL and number == 2 and payload[:1] in {b"K", b"E"}:
                return data[:at]
            at += HEADER.size + length
        return data


def feed(path: str, data: bytes) -> None:
    """One connection that says this and goes."""
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            one.sendall(data)


def check(agent: Agent, inputs: Inputs) -> None:
    """The keeper serves a correct ATTACH, and its command lives."""
    agent.link.cut()
    agent.epoch = inputs.epoch
    heard = agent.out.count(b"here\n")
    attached = agent.attach(again=True)
    inputs.epoch = agent.epoch
    assert attached.number == 1, "a control was done that no input holds"
    agent.send(agent.frame(Kind.BEAT, heard))
    assert agent.until(Kind.BEAT_BACK).number == heard
    assert Path(f"/proc/{agent.seen_pid()}").exists(), "the command is gone"


def last_check(agent: Agent, inputs: Inputs) -> None:
    """It also does what it is told."""
    check(agent, inputs)
    agent.controls = 1
    agent.acknowledges = False
    agent.kill(10)
    agent.until_true(lambda: agent.out.endswith(b"here\n"))


@contextlib.contextmanager
def session(keeper: Path) -> Iterator[Agent]:
    """A keeper with a command that waits."""
    with Agent(keeper) as agent:
        agent.acknowledges = False
        agent.start(*COMMAND, has_stdin=True, lease=600_000)
        agent.until_true(lambda: agent.out == b"ready\n")
        yield agent


def fuzz(keeper: Path, *, inputs: int, seed: int, checks: int) -> None:
    """Feed them, and check now and then."""
    source = Inputs(seed)
    with session(keeper) as agent:
        path = socket_of(agent.nonce)
        for number in range(inputs):
            feed(path, source.next())
            if number % (inputs // checks) == 0:
                check(agent, source)
        last_check(agent, source)


def fuzz_starts(keeper: Path, *, inputs: int, seed: int) -> None:
    """A START that is wrong somewhere: FAILED, a command that can't be started, or one that can."""
    chance = random.Random(seed)
    good = bytes(Start(["/nonexistent/program", "word"], {"A": "1"}, job="job"))
    for _ in range(inputs):
        text = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            text[chance.randrange(len(text))] = chance.choice((0, 1, 2, 0x7F, 0xFF))
        del text[chance.randrange(len(text) + 1) if chance.random() < 0.3 else len(text) :]
        with Agent(keeper) as agent:
            agent.attach()
            agent.send(agent.control(b"S" + bytes(text)))
            assert agent.until(Kind.FAILED).payload
            agent.done()
            assert agent.link.process.returncode == 0


def main(arguments: Sequence[str]) -> int:
    """Run, and say how it went."""
    parser = argparse.ArgumentParser(description="Feed a keeper with random and mutated frames.")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keeper", type=Path, help="a compiled keeper, instead of one with sanitizers")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="keeper-fuzz-"))
    try:
        keeper = options.keeper or compile_keeper(folder)
        fuzz(keeper, inputs=options.inputs, seed=options.seed, checks=min(100, options.inputs))
        fuzz_starts(keeper, inputs=options.starts, seed=options.seed)
    finally:
        shutil.rmtree(folder)
    taken = time.monotonic() - began
    print(
        f"{options.inputs} inputs and {options.starts} STARTs in {taken:.0f} s, seed {options.seed}: it survived"
    )
    return 0


if __name__ == "__main__":
    os.nice(10)
    sys.exit(main(sys.argv[1:]))
