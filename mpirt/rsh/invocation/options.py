"""
ssh's options, and what becomes of each here.

Owns: the table, and reading one word of options. Nothing is known of hosts or commands.

Launchers put ssh's options before the host and after it, without asking which program they start. What only
makes sense for ssh is taken and ignored; what a user would miss (a forwarded port, a background ssh) is
refused.
"""

from __future__ import annotations

from enum import Enum

from mpirt.errors import UsageError
from mpirt.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Does(Enum):
    """What an option does here."""

    NOTHING = "nothing"
    SET = "set"
    """-o: a setting by its name."""
    NO_STDIN = "no stdin"
    SUBSYSTEM = "subsystem"
    VERBOSE = "verbose"
    VERSION = "version"
    HELP = "help"
    FORWARDING = "forwarding"
    """Refused, and the message names what forwards ports instead."""
    REFUSED = "refused"


class Option(Value):
    """One option."""

    does: Does
    takes_word: bool = False


_FLAG = Option(Does.NOTHING)
_WORD = Option(Does.NOTHING, takes_word=True)
_REFUSED_FLAG = Option(Does.REFUSED)
_REFUSED_WORD = Option(Does.REFUSED, takes_word=True)

OPTIONS = {
    **dict.fromkeys("1246AaCgKkqTtXxYy", _FLAG),
    **dict.fromkeys("BbcEeFIilmPpS", _WORD),
    "h": Option(Does.HELP),
    "n": Option(Does.NO_STDIN),
    "o": Option(Does.SET, takes_word=True),
    "s": Option(Does.SUBSYSTEM),
    "V": Option(Does.VERSION),
    "v": Option(Does.VERBOSE),
    **dict.fromkeys("DLRW", Option(Does.FORWARDING, takes_word=True)),
    # in the background, without a command, through or for another ssh
    **dict.fromkeys("fGMN", _REFUSED_FLAG),
    **dict.fromkeys("JOQw", _REFUSED_WORD),
}

# The settings of -o that ask for what an option asks for, or for something that is refused, by certain values.
_BY_VALUE = {
    "stdinnull": {"yes": Does.NO_STDIN, "true": Does.NO_STDIN, "no": Does.NOTHING, "false": Does.NOTHING},
    "sessiontype": {"subsystem": Does.SUBSYSTEM, "none": Does.REFUSED},
}
_FORWARDING_SETTINGS = frozenset({"dynamicforward", "localforward", "remoteforward"})
_REFUSED_SETTINGS = frozenset({"forkafterauthentication", "proxyjump", "remotecommand", "tunnel"})
_OFF = ("none", "no", "false")


class Given(Value):
    """An option as it was given; for -o, the setting's name in lower case and its value."""

    does: Does
    name: str = ""
    text: str = ""


def read_word(word: str, following: Iterator[str]) -> list[Given]:
    """The options in one word, as -xTp with 22 `following`. Raises UsageError."""
    found = []
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        option = OPTIONS.get(letter)
        if option is None:
            raise UsageError(f"unknown option -{letter} in {word!r}; ssh's options are understood, see --help")
        text = ""
        if option.takes_word:
            text, letters = letters or next(following, ""), ""
            if not text:
                raise UsageError(f"option -{letter} needs a value, as in: -{letter} VALUE")
        _refuse(option.does, f"option -{letter}")
        found.append(_setting(text) if option.does is Does.SET else Given(option.does, letter, text))
    return found


def _setting(text: str) -> Given:
    """NAME=VALUE or NAME VALUE, in any case."""
    written, rest = _split(text.strip())
    if not rest:
        raise UsageError(f"-o {text!r} is no setting; write it as -o NAME=VALUE")
    name, wanted = written.lower(), rest.lower()
    if wanted not in _OFF:
        refused = Does.REFUSED if name in _REFUSED_SETTINGS else Does.NOTHING
        _refuse(Does.FORWARDING if name in _FORWARDING_SETTINGS else refused, f"-o {written}")
    if name not in _BY_VALUE:
        return Given(Does.SET, name, rest)
    if name == "stdinnull" and wanted not in _BY_VALUE[name]:
        raise UsageError(f"-o {written}={rest}: expected yes or no")
    does = _BY_VALUE[name].get(wanted, Does.NOTHING)
    _refuse(does, f"-o {written}={rest}")
    return Given(does, name, rest)


def _split(text: str) -> tuple[str, str]:
    """The name ends at the first space or =; what follows may hold more of both."""
    end = next((place for place, letter in enumerate(text) if letter in " \t="), len(text))
    rest = text[end:].lstrip()
    return text[:end], rest[1:].lstrip() if rest.startswith("=") else rest


def _refuse(does: Does, what: str) -> None:
    if does is Does.FORWARDING:
        raise UsageError(
            f"{what} can't be honoured: no ports are forwarded here; use: kubectl port-forward POD PORT"
        )
    if does is Does.REFUSED:
        raise UsageError(f"{what} can't be honoured: there is no ssh connection here to use or forward by")
