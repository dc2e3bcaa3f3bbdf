"""
What a launcher says on the command line, in the three dialects that launchers speak.

Owns: the dialects and the one value that comes out of them. Nothing is contacted, and nothing read but the
words.

    rsh         [options] HOST [options] WORDS...     mpirun, Hydra, people
    ssh         the same, for launchers that start ssh and nothing else
    kubexec.sh  HOST WORDS...                         where nothing is an option

The words after the host are one shell string, joined by single spaces, as with ssh. Their quoting is the
launcher's: Open MPI passes words with literal quotes in them, and parentheses as words of their own. To start
the words as they are, or to quote them again, breaks that.
"""

from __future__ import annotations

from mpirt.errors import UsageError
from mpirt.rsh.options import Does, Given, read_word
from mpirt.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KUBEXEC = "kubexec.sh"

_LONGEST_LABEL = 63
_LABEL_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_LONGEST_WAIT = 86400


@value
class Invocation:
    """What is to be done, as far as the command line says it."""

    pod: str
    words: tuple[str, ...]
    """The command, as it came."""
    namespace: str = ""
    """From a full host name; empty where it names none."""
    user: str = ""
    null_stdin: bool = False
    wants_terminal: bool = False
    direct: bool = False
    connect_seconds: float | None = None
    attempts: int = 0
    """How many there may be; 0 where nothing was said."""


@value
class Wants:
    """The person wants to be told something, and nothing to be done: "help", "version", or "V" as of ssh."""

    what: str


def parse(program: str, words: Sequence[str]) -> Invocation | Wants:
    """Read the words after the program's name. Raises UsageError."""
    if program.rpartition("/")[2] == KUBEXEC:
        return _Reader(words).plain()
    return _Reader(words).read()


class _Reader:
    """Options, the host, options, the command."""

    __slots__ = ("_direct", "_given", "_rest", "_wants")

    def __init__(self, words: Sequence[str]) -> None:
        self._rest = list(words)
        self._given: list[Given] = []
        self._direct = False
        self._wants = ""

    def plain(self) -> Invocation:
        return self._invocation(self._rest.pop(0) if self._rest else "")

    def read(self) -> Invocation | Wants:
        self._options()
        host = self._rest.pop(0) if self._rest else ""
        self._options()
        wants = self._wants or ("V" if self._was_given(Does.VERSION) else "")
        return Wants(wants) if wants else self._invocation(host)

    def _options(self) -> None:
        """Take options off the front. A lone dash is none."""
        while self._rest and self._rest[0].startswith("-") and self._rest[0] != "-":
            word = self._rest.pop(0)
            if word == "--":
                return
            if word.startswith("--"):
                self._long_option(word)
            else:
                self._given += read_word(word, self._values())

    def _long_option(self, word: str) -> None:
        match word:
            case "--direct":
                self._direct = True
            case "--help" | "--version":
                self._wants = self._wants or word[2:]
            case _:
                raise UsageError(
                    f"unknown option {word!r}; there are --direct, --help and --version, and ssh's own"
                )

    def _values(self) -> Iterator[str]:
        while self._rest:
            yield self._rest.pop(0)

    def _invocation(self, host: str) -> Invocation:
        user, pod, namespace = parse_host(host)
        if not any(word.strip() for word in self._rest):
            raise UsageError(f"no command for {pod}; write it after the host, as in: mpirt-rsh {pod} hostname")
        return Invocation(
            pod=pod,
            words=tuple(self._rest),
            namespace=namespace,
            user=user or self._last(Does.USER),
            null_stdin=self._was_given(Does.NO_STDIN),
            wants_terminal=self._was_given(Does.TERMINAL),
            direct=self._direct,
            connect_seconds=self._seconds("connecttimeout"),
            attempts=int(self._number("connectionattempts", 1000) or 0),
        )

    def _was_given(self, does: Does) -> bool:
        return any(given.does is does for given in self._given)

    def _last(self, does: Does, name: str = "") -> str:
        found = [given.text for given in self._given if given.does is does and name in ("", given.name)]
        return found[-1] if found else ""

    def _seconds(self, name: str) -> float | None:
        return None if self._last(Does.SET, name).lower() == "none" else self._number(name, _LONGEST_WAIT)

    def _number(self, name: str, most: int) -> float | None:
        text = self._last(Does.SET, name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and 0 < int(text) <= most):
            raise UsageError(f"-o {name}={text}: expected a number from 1 to {most}")
        return float(text)


def parse_host(host: str) -> tuple[str, str, str]:
    """User, pod and namespace out of [USER@]POD[.SERVICE[.NAMESPACE[.svc...]]]. Raises UsageError."""
    if not host:
        raise UsageError("no host; the form is: mpirt-rsh [options] HOST COMMAND...")
    user, at, name = host.rpartition("@")
    if at and not user:
        raise UsageError(f"{host!r} has no user before the @")
    labels = name.removesuffix(".").split(".")
    for label in labels:
        if not _is_label(label):
            raise UsageError(
                f"{host!r} can't be a pod: a pod's name is of lower-case letters, digits and dashes, "
                f"up to {_LONGEST_LABEL} of them, and begins and ends with a letter or digit"
            )
    pod, *others = labels
    return user, pod, _namespace(others)


def _namespace(others: list[str]) -> str:
    match others:
        case [_, namespace] | [_, namespace, "svc", *_]:
            return namespace
    return ""


def _is_label(label: str) -> bool:
    return (
        0 < len(label) <= _LONGEST_LABEL
        and _LABEL_LETTERS.issuperset(label)
        and not label.startswith("-")
        and not label.endswith("-")
    )
