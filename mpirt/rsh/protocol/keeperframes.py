"""
The frames between the agent and a keeper in the pod, as bytes.

Owns: their types and payloads, which docs/keeper.md describes. No I/O, no state. Must not know: what follows from
a frame.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING

from mpirt import keeper
from mpirt.errors import PeerError
from mpirt.rsh.protocol import framing
from mpirt.rsh.protocol.framing import Frame, FrameReader
from mpirt.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# The number of these frames, which is part of the keeper's file name and of its first line.
PROTOCOL = keeper.PROTOCOL
LARGEST_PAYLOAD = 32768
# Of a job's name, in bytes.
LONGEST_JOB = 511


class Kind(IntEnum):
    """What a frame is. The first nine are the agent's, the others the keeper's."""

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
    ANSWER = 40
    FAILED = 41
    USED = 42
    FENCED = 43


_FROM_KEEPER: dict[int, int] = {kind: LARGEST_PAYLOAD for kind in Kind if kind > Kind.USAGE}

START = b"S"
_PART = b"s"
_SIGNAL = b"K"
_END = b"E"


class Fence(Value):
    """By which a keeper knows what earlier launchers of a job have left."""

    job: str = ""
    """Empty: no fence."""
    attempt: int = 0
    """The launcher's number, where the user counts them."""
    launcher: int = 0
    """What no other launcher has; 0 where the user counts them."""


NO_FENCE = Fence()


class EndedBy(Enum):
    """Who has ended a command. Of one that was ended, 0 is no success."""

    ITSELF = 0
    LEASE = 1
    END = 2
    SIGNAL = 3
    """One to the keeper, which is from outside."""


_ENDED_BY = {by.value: by for by in EndedBy}


class Exit(Value):
    """How the command ended, and how much it wrote."""

    code: int
    by: EndedBy
    """As a shell has it: 128 and the number for a signal."""
    left_open: bool
    """Something still held its output open when the keeper stopped waiting for more."""
    stdout: int
    stderr: int


class Usage(Value):
    """What the command's processes use."""

    cpu: float
    """Seconds of CPU time so far."""
    memory: int
    """Bytes."""
    processes: int


def frame(kind: Kind, epoch: int, number: int = 0, payload: bytes = b"") -> bytes:
    """A frame."""
    if len(payload) > LARGEST_PAYLOAD:
        raise ValueError(f"a frame takes {LARGEST_PAYLOAD} bytes, not {len(payload)}")
    return framing.frame(kind, payload, epoch=epoch, number=number)


def reader() -> FrameReader:
    """For what comes from a keeper."""
    return FrameReader("the keeper", _FROM_KEEPER)


def lengths(stdout: int, stderr: int) -> bytes:
    """The payload of ATTACH and ACK."""
    return stdout.to_bytes(8, "little") + stderr.to_bytes(8, "little")


def signal_control(number: int) -> bytes:
    """What gives the command a signal."""
    return _SIGNAL + bytes((number,))


def end_control(number: int, grace: float) -> bytes:
    """What ends all of it: by a signal, and by KILL after the grace in seconds."""
    return _END + bytes((number,)) + _milliseconds(grace)


def start_controls(start: bytes) -> Iterator[bytes]:
    """START in as many parts as it takes."""
    room = LARGEST_PAYLOAD - 1
    last = max(len(start) - 1, 0) // room * room
    for at in range(0, last, room):
        yield _PART + start[at : at + room]
    yield START + start[last:]


def start(
    argv: Sequence[bytes],
    environment: Mapping[str, bytes],
    *,
    lease: float,
    grace: float,
    has_stdin: bool,
    fence: Fence,
) -> bytes:
    """What is to be started, and how it is to be held."""
    job_name = fence.job.encode(errors="surrogateescape")
    variables = [name.encode() + b"=" + text for name, text in environment.items()]
    head = _milliseconds(lease) + _milliseconds(grace) + bytes((has_stdin,))
    claim = fence.attempt.to_bytes(8, "little") + fence.launcher.to_bytes(8, "little")
    counts = len(argv).to_bytes(2, "little") + len(variables).to_bytes(2, "little")
    return head + claim + counts + b"".join(word + b"\0" for word in (job_name, *argv, *variables))


def _milliseconds(seconds: float) -> bytes:
    return min(int(seconds * 1000), 2**32 - 1).to_bytes(4, "little")


def read_attached(found: Frame) -> tuple[int, int]:
    """What ATTACHED says: how many controls are done, and how much of stdin is taken. Raises PeerError."""
    _expect(found, 9)
    return found.number, int.from_bytes(found.payload[1:], "little")


def read_flag(found: Frame) -> bool:
    """What STARTED and TAKEN say beside their number. Raises PeerError."""
    _expect(found, 1)
    return bool(found.payload[0])


def read_exit(found: Frame) -> Exit:
    """What EXIT says. Raises PeerError."""
    _expect(found, 20)
    how, code, left_open, by = found.payload[:4]
    if by not in _ENDED_BY:
        raise PeerError(f"the keeper's EXIT says that {by} has ended the command")
    stdout, stderr = (int.from_bytes(found.payload[at : at + 8], "little") for at in (4, 12))
    return Exit(min(128 + code, 255) if how else code, _ENDED_BY[by], bool(left_open), stdout, stderr)


def read_usage(found: Frame) -> Usage | None:
    """What the keeper's USAGE says; None where it knows nothing. Raises PeerError."""
    _expect(found, 20)
    microseconds, memory, processes = (
        int.from_bytes(found.payload[at:end], "little") for at, end in ((0, 8), (8, 16), (16, 20))
    )
    return Usage(microseconds / 1e6, memory, processes) if any(found.payload) else None


def _expect(found: Frame, size: int) -> None:
    if len(found.payload) != size:
        raise PeerError(f"the keeper's {Kind(found.kind).name} has {len(found.payload)} bytes, not {size}")
