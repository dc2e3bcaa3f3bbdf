"""
What another process needs to go on with a command that was started, should this one be killed.

Owns: the record of a command, which is kept before the command is started and when its end is known, and what else
is known then: by whoever has written its output and read its stdin. Values only.
"""

from __future__ import annotations

from mpirt.values import Value


class Record(Value):
    """One command."""

    pod: str
    nonce: str
    container: str
    container_start: int = 0
    """When the first process of its container started; 0 where that is not known."""
    is_held: bool = True
    """Whether a keeper holds it. If not it ends with its connection."""
    code: int | None = None
    """The code to end with, once that is known."""
    line: str = ""
    """What to say then."""


class Resumption(Value):
    """A command that another process has started, and what has become of its streams."""

    record: Record
    generation: int
    """How many processes had it before: from 1 on."""
    output: tuple[int, int] = (0, 0)
    """How many bytes of stdout and of stderr have been received."""
    stdin_at: int = 0
    """The offset of the first byte of stdin that may not have been taken."""
    stdin: bytes = b""
    """What was read of it from there on."""
    stdin_ended: bool = False
    signals: tuple[tuple[str, int], ...] = ()
    """The names and numbers of all signals so far, in order."""
