"""
What the pod's side is asked to do, whoever does it there.

Owns: the value, and the one string that ssh makes of a command's words. No I/O.
"""

from __future__ import annotations

from mpirt.errors import UsageError
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What a command is for, unless another shell is asked for.
SHELL = "/bin/sh"


class Order(Value):
    """One command, with what it is given."""

    nonce: str
    command: bytes
    has_stdin: bool = False
    environment: Mapping[str, str] = {}
    shell: str = SHELL
    """The one that gets the command, by its path in the pod."""

    def __post_init__(self) -> None:
        if not (self.nonce.isalnum() and self.nonce.isascii()):
            raise ValueError(f"a nonce is letters and digits, got {self.nonce!r}")
        if b"\0" in self.command:
            raise UsageError("the command holds a NUL byte, which no shell can take")
        if not (self.shell.startswith("/") and self.shell.isprintable()) or self.shell.endswith("/"):
            raise UsageError(f"{self.shell[:40]!r} can't be a shell: expected a path such as /bin/bash")
        for name in self.environment:
            if not (name.isidentifier() and name.isascii()):
                raise UsageError(f"{name!r} is no name for an environment variable")


def command_line(words: Sequence[str], *, encoding: str) -> bytes:
    """The words after the host as the one string that ssh makes of them; `encoding` is what they were read in."""
    return " ".join(words).encode(encoding, "surrogateescape")
