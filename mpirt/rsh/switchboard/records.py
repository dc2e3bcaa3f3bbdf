"""
A command's record as the bytes that its agent keeps, and a HANDOVER as what a session resumes.

Owns: the form of the record. Only switchboards of the same protocol read it. No I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from mpirt.errors import PeerError
from mpirt.rsh.session.task import Record, Resumption
from mpirt.rsh.switchboard.frames import LARGEST_RECORD, Handover

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


def resumption(handover: Handover, names: Mapping[int, str]) -> Resumption | None:
    """What there is to go on with; None where nothing was started. `names` has the signals that commands get."""
    if handover.kept in (b"", _NONE):
        return None
    return Resumption(
        read_record(handover.kept),
        generation=max(handover.generation, 1),
        output=handover.output,
        stdin_at=handover.stdin_at,
        stdin=handover.stdin,
        stdin_ended=handover.stdin_ended,
        signals=tuple((names[number], number) for number in handover.signals if number in names),
    )
