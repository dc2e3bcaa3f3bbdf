"""
ssh's options, and what becomes of each here.

Owns: the table, and reading one word of options. Nothing is known of hosts or commands.

Launchers put ssh's options before the host and after it, without asking which program they start. What only
makes sense for ssh is taken and ignored; what a user would miss (a forwarded port, a background ssh) is
refused.
"""

from __future__ import annotations

from mpirt.errors import UsageError
from mpirt.values import Enum, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Does(Enum):
    """What an option does here."""

    NOTHING = "nothing"
    SET = "set"
    """-o: a setting by its name."""
    USER = "user"
    NO_STDIN = "no stdin"
    TERMINAL = "terminal"
    VERSION = "version"
    REFUSED = "refused"


@value
class Option:
    """One option."""

    does: Does
    takes_word: bool = False


_FLAG = Option(Does.NOTHING)
_WORD = Option(Does.NOTHING, takes_word=True)
_REFUSED_FLAG = Option(Does.REFUSED)
_REFUSED_WORD = Option(Does.REFUSED, takes_word=True)

OPTIONS = {
    **dict.fromkeys("1246AaCGgKkqsTvXxYy", _FLAG),
    **dict.fromkeys("BbcEeFIimPpS", _WORD),
    "l": Option(Does.USER, takes_word=True),
    "n": Option(Does.NO_STDIN),
    "o": Option(Does.SET, takes_word=True),
    "t": Option(Does.TERMINAL),
    "V": Option(Does.VERSION),
    # in the background, without a command, forwarding, control of another ssh
    **dict.fromkeys("fMN", _REFUSED_FLAG),
    **dict.fromkeys("DJLORQWw", _REFUSED_WORD),
}

# The settings of -o that ask for what -L and the like ask for.
_REFUSED_SETTINGS = frozenset({
    "dynamicforward", "forkafterauthentication", "localforward", "proxyjump", "remotecommand", "remoteforward",
    "tunnel",
})  # fmt: skip


@value
class Given:
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
        if option.does is Does.REFUSED:
            raise UsageError(
                f"option -{letter} can't be honoured: there is no ssh connection here to use or forward by"
            )
        found.append(_setting(text) if option.does is Does.SET else Given(option.does, letter, text))
    return found


def _setting(text: str) -> Given:
    """NAME=VALUE or NAME VALUE, in any case."""
    name, _, rest = text.strip().replace("=", " ", 1).partition(" ")
    if not rest.strip():
        raise UsageError(f"-o {text!r} is no setting; write it as -o NAME=VALUE")
    if name.lower() in _REFUSED_SETTINGS and rest.strip().lower() not in ("none", "no"):
        raise UsageError(f"-o {name} can't be honoured: there is no ssh connection here to use or forward by")
    return Given(Does.SET, name.lower(), rest.strip())
