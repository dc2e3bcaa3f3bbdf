"""
What the pod's side is asked to do: the command, and the variables that travel with it (ssh's SendEnv and SetEnv).

Owns: the value, the one string that ssh makes of a command's words, which variables of ours match, and reading
what is set. Nothing is read but what is handed in. No I/O.

As with ssh, a pattern behind a dash takes back the patterns before it that it matches, and of a name that is set
twice the first value counts. Unlike ssh, SetEnv may be given several times: all of them count. What sshd would
accept is not asked: a pod has no such list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from mpirt.errors import UsageError
from mpirt.values import Value

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


def command_line(words: Sequence[str]) -> bytes:
    """The words after the host as the one string that ssh makes of them."""
    return " ".join(words).encode(errors="surrogateescape")


# Read-only in bash; to export one of them would end the shell.
_READ_ONLY = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"})
_ESCAPED = "\"'\\"


def exported(send: Sequence[str], assign: Sequence[str], here: Mapping[str, str]) -> dict[str, str]:
    """The variables for the command, out of SendEnv and SetEnv and the environment `here`. Raises UsageError."""
    found: dict[str, str] = {}
    for text in assign:
        for word in _words(text, "SetEnv"):
            name, equals, content = word.partition("=")
            if not equals:
                raise UsageError(f"-o SetEnv={text}: expected NAME=VALUE")
            found.setdefault(_checked(name), content)
    patterns = _patterns(send)
    for name, content in here.items():
        if name not in found and _can_be_set(name) and any(matches(name, pattern) for pattern in patterns):
            found[name] = content
    return found


def matches(name: str, pattern: str) -> bool:
    """Whether all of the name matches: * is any text, ? any letter, and no other letter is special."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def _patterns(settings: Sequence[str]) -> list[str]:
    found: list[str] = []
    for text in settings:
        for word in _words(text, "SendEnv"):
            if not word or "=" in word:
                raise UsageError(f"-o SendEnv={text}: expected names of variables; values are for -o SetEnv")
            if word.startswith("-"):
                found = [pattern for pattern in found if not matches(pattern, word[1:])]
            else:
                found.append(word)
    return found


def _checked(name: str) -> str:
    if not (name.isidentifier() and name.isascii()):
        raise UsageError(f"-o SetEnv: {name!r} is no name for an environment variable")
    if name in _READ_ONLY:
        raise UsageError(f"-o SetEnv: {name!r} can't be set: shells do that themselves")
    return name


def _can_be_set(name: str) -> bool:
    return name.isidentifier() and name.isascii() and name not in _READ_ONLY


def _words(text: str, setting: str) -> list[str]:
    """The words of a setting as ssh reads its configuration: quotes of both kinds, a backslash before them."""
    words: list[str] = []
    word: str | None = None
    quote, was_escape = "", False
    for letter, following in zip(text, f"{text[1:]}\0", strict=True):
        if was_escape:
            word, was_escape = f"{word or ''}{letter}", False
        elif letter == "\\" and (following in _ESCAPED or (following == " " and not quote)):
            was_escape = True
        elif letter in (quote or "\"'"):
            quote, word = ("" if quote else letter), word or ""
        elif letter in " \t" and not quote:
            words += [] if word is None else [word]
            word = None
        else:
            word = (word or "") + letter
    if quote:
        raise UsageError(f"-o {setting}={text} has a quote without an end")
    return words if word is None else [*words, word]
