"""
Variables that travel with a command: ssh's SendEnv and SetEnv.

Owns: which variables of ours match, and reading what is set. Nothing is read but what is handed in. Imported only
where one of the two is given.

As with ssh, a pattern behind a dash takes back the patterns before it that it matches, and of a name that is set
twice the first value counts. Unlike ssh, SetEnv may be given several times: all of them count. What sshd would
accept is not asked: a pod has no such list.
"""

from __future__ import annotations

from mpirt.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Read-only in bash; to export one of them would end the shell.
_READ_ONLY = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"})
_ESCAPED = "\"'\\"


def exported(
    send: Sequence[str], assign: Sequence[str], here: Mapping[str, str], *, encoding: str = "utf-8"
) -> dict[str, str]:
    """
    The variables for the command, out of the values of SendEnv and SetEnv and the environment `here`.

    `encoding` is what the values were read in; they come back as UTF-8 would have them read. Raises UsageError.
    """
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
    return {
        name: content.encode(encoding, "surrogateescape").decode("utf-8", "surrogateescape")
        for name, content in found.items()
    }


def matches(name: str, pattern: str) -> bool:
    """Whether all of the name matches: * is any text, ? any letter. In time that grows with both, not more."""
    at = {0}
    for letter in name:
        # Each is a place in the pattern before which everything has matched.
        reached = _past_stars(at, pattern)
        at = {place for place in reached if pattern[place : place + 1] == "*"}
        at |= {place + 1 for place in reached if pattern[place : place + 1] in ("?", letter)}
    return len(pattern) in _past_stars(at, pattern)


def _past_stars(places: set[int], pattern: str) -> set[int]:
    found = set()
    for place in places:
        found.add(place)
        end = place
        while pattern[end : end + 1] == "*":
            end += 1
            found.add(end)
    return found


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
