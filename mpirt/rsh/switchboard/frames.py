"""
The words between the switchboard and its agents, as bytes; and a command's record, which its agent keeps.

Owns: the types and payloads of docs/switchboard.md, which images/agent has in C, and the form of the record.
Only switchboards of the same protocol read it. No I/O.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from mpirt.errors import ExitCode, MpirtError, PeerError
from mpirt.rsh.protocol.framing import FrameReader, frame
from mpirt.rsh.session.task import Record, Resumption

PROTOCOL = 1
# A longer answer comes in several frames.
LARGEST_ANSWER = 1024 * 1024
LARGEST_HANDOVER = 8 * 1024 * 1024
LARGEST = 64 * 1024
LARGEST_RECORD = 8 * 1024
# How much of a stream may be on its way to an agent, or wait there for its reader.
WINDOW = 256 * 1024
# How much of stdin an agent keeps: what a keeper has room for.
STDIN_KEPT = 1024 * 1024
MOST_SIGNALS = 64
# The signals that are meant for the command, by their numbers on Linux.
SIGNALS: Mapping[int, str] = {15: "TERM", 2: "INT", 1: "HUP", 3: "QUIT", 10: "USR1", 12: "USR2"}

_FIXED = struct.Struct("<BIQQQ")
_U32 = struct.Struct("<I")
_HAS_STDIN, _STDIN_ENDED = 1, 2


class Kind(IntEnum):
    """What a frame is."""

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
    STATUS = 11
    DISCOVERED = 12
    SETTLED = 13

    HANDOVER = 65
    STDIN = 66
    STDIN_BROKEN = 67
    SIGNAL = 68
    WRITTEN = 69
    BROKEN = 70
    STATUS_REQUEST = 71
    DISCOVER_REQUEST = 72
    SETTLED_REQUEST = 73


_FROM_AGENT: dict[int, int] = {kind: LARGEST for kind in Kind if kind > Kind.HANDOVER}
_FROM_AGENT[Kind.HANDOVER] = LARGEST_HANDOVER


@dataclass(frozen=True, slots=True)
class Handover:
    """One command, as its agent hands it over."""

    called: str
    folder: str
    words: tuple[str, ...]
    environ: Mapping[str, str]
    has_stdin: bool = False
    stdin_ended: bool = False
    generation: int = 0
    output: tuple[int, int] = (0, 0)
    stdin_at: int = 0
    stdin: bytes = b""
    signals: tuple[int, ...] = ()
    kept: bytes = b""


def welcome(pid: int) -> bytes:
    """The first words to an agent."""
    return frame(Kind.WELCOME, struct.pack("<II", PROTOCOL, pid))


def offset(kind: Kind, number: int) -> bytes:
    """ROOM and TAKEN."""
    return frame(kind, struct.pack("<Q", number))


def finish(code: int) -> bytes:
    """The last word."""
    return frame(Kind.FINISH, bytes([code]))


def answer(kind: Kind, document: bytes) -> bytes:
    """STATUS, DISCOVERED and SETTLED: as many frames as it takes, and an empty one."""
    pieces = (document[at : at + LARGEST_ANSWER] for at in range(0, len(document), LARGEST_ANSWER))
    return b"".join(frame(kind, piece) for piece in (*pieces, b""))


def reader() -> FrameReader:
    """For what comes from an agent or a client."""
    return FrameReader("an agent", _FROM_AGENT)


def read_written(payload: bytes) -> tuple[int, int, int]:
    """Bytes of stdout and of stderr, and lines of ours."""
    stdout, stderr, said = _unpack("<QQQ", payload)
    return stdout, stderr, said


def read_broken(payload: bytes) -> tuple[int, int]:
    """The stream and the errno."""
    stream, error = _unpack("<BI", payload)
    if stream not in (1, 2):
        raise PeerError(f"an agent says that its stream {stream} is broken")
    return stream, error


def read_signal(payload: bytes) -> int:
    """The number of a signal."""
    return _unpack("<B", payload)[0]


def read_errno(payload: bytes) -> int:
    """Why stdin can't be read."""
    return _unpack("<I", payload)[0]


def write_handover(given: Handover) -> bytes:
    """The payload of HANDOVER. It is the first that an agent sends: without a record, output or stdin."""
    flags = given.has_stdin * _HAS_STDIN
    variables = [f"{name}={text}" for name, text in given.environ.items()]
    texts = [given.called, given.folder, *given.words, *variables]
    strings = b"".join(text.encode(errors="surrogateescape") + b"\0" for text in texts)
    counts = _U32.pack(len(given.words)) + _U32.pack(len(variables))
    return _FIXED.pack(flags, 0, 0, 0, 0) + bytes(3 * _U32.size) + counts + strings


def read_handover(payload: bytes) -> Handover:
    """HANDOVER. Raises PeerError."""
    flags, generation, stdout, stderr, stdin_at = _unpack_from(_FIXED, payload, 0)
    at = _FIXED.size
    signals, at = _counted(payload, at)
    kept, at = _counted(payload, at)
    stdin, at = _counted(payload, at)
    if len(signals) > MOST_SIGNALS:
        raise PeerError(f"{len(signals)} signals in a HANDOVER: {MOST_SIGNALS} are the most")
    (called, folder), words, environ = _read_strings(payload, at, first=2)
    return Handover(
        called,
        folder,
        words,
        environ,
        has_stdin=bool(flags & _HAS_STDIN),
        stdin_ended=bool(flags & _STDIN_ENDED),
        generation=generation,
        output=(stdout, stderr),
        stdin_at=stdin_at,
        stdin=stdin,
        signals=tuple(signals),
        kept=kept,
    )


def read_discover_request(payload: bytes) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The words of mpirt-discover, and those of its variables that matter. Raises PeerError."""
    _, words, environ = _read_strings(payload, 0, first=0)
    return words, environ


def discovered(code: int, output: bytes, errors: bytes) -> bytes:
    """The payload of DISCOVERED: what to write, and the code to end with."""
    return struct.pack("<BBI", 1, code, len(output)) + output + errors


def refused(why: str) -> bytes:
    """The payload of DISCOVERED where the API server has to be asked."""
    return b"\0" + why.encode(errors="replace")


def _read_strings(payload: bytes, at: int, *, first: int) -> tuple[list[str], tuple[str, ...], Mapping[str, str]]:
    """The number of words and of variables, then strings, each ended by NUL: `first` others, words, variables."""
    (words,) = _unpack_from(_U32, payload, at)
    (variables,) = _unpack_from(_U32, payload, at + _U32.size)
    texts = payload[at + 2 * _U32.size :].split(b"\0")
    if len(texts) != first + words + variables + 1 or texts.pop():
        raise PeerError("an agent's frame does not hold the strings that it announces")
    found = [text.decode(errors="surrogateescape") for text in texts]
    pairs = (text.partition("=") for text in found[first + words :])
    return found[:first], tuple(found[first : first + words]), {name: given for name, _, given in pairs}


def _counted(payload: bytes, at: int) -> tuple[bytes, int]:
    (length,) = _unpack_from(_U32, payload, at)
    begin = at + _U32.size
    if len(payload) < begin + length:
        raise PeerError("an agent's HANDOVER is cut off")
    return payload[begin : begin + length], begin + length


def _unpack(layout: str, payload: bytes) -> tuple[int, ...]:
    try:
        return struct.unpack(layout, payload)
    except struct.error as error:
        raise PeerError(f"a frame of {len(payload)} bytes from an agent: {error}") from None


def _unpack_from(layout: struct.Struct, payload: bytes, at: int) -> tuple[int, ...]:
    try:
        return layout.unpack_from(payload, at)
    except struct.error:
        raise PeerError("an agent's frame is cut off") from None


_FIELDS = ("pod", "nonce", "container", "container_start", "code", "line")

# What was kept before is not true any more.
_NONE = b"null"


def write_record(record: Record | None) -> bytes:
    """What the agent keeps."""
    if record is None:
        return _NONE
    fields = {field: getattr(record, field) for field in _FIELDS}
    kept = json.dumps(fields).encode()
    # An agent takes no more; a line may repeat what a server has said.
    while len(kept) > LARGEST_RECORD and fields["line"]:
        fields["line"] = fields["line"][: len(fields["line"]) // 2]
        kept = json.dumps(fields).encode()
    return kept


def read_record(kept: bytes) -> Record:
    """The same back. Raises PeerError."""
    try:
        found = json.loads(kept)
        return Record(**{field: found[field] for field in _FIELDS})
    except (ValueError, KeyError, TypeError) as error:
        raise PeerError("an agent has kept a record that can't be read") from error


def resumption(handover: Handover) -> Resumption | None:
    """What there is to go on with; None where nothing was started."""
    if handover.kept in (b"", _NONE):
        return None
    return Resumption(
        read_record(handover.kept),
        generation=max(handover.generation, 1),
        output=handover.output,
        stdin_at=handover.stdin_at,
        stdin=handover.stdin,
        stdin_ended=handover.stdin_ended,
        signals=tuple((SIGNALS[number], number) for number in handover.signals if number in SIGNALS),
    )


def end_of(handover: Handover, error: MpirtError) -> tuple[str, int]:
    """The line and the code where there is no way to a command. One that may have run has its own."""
    resumed = None if isinstance(error, PeerError) else resumption(handover)
    if resumed is None:
        return str(error), error.code
    record = resumed.record
    if record.code is not None:
        return record.line, record.code
    line = f"there is no way back to pod {record.pod}, and the command ends there within the lease: {error}"
    return line, ExitCode.CONNECTION_LOST
