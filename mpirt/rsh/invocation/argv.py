"""
What a launcher says on the command line, in the three dialects that launchers speak.

Owns: the dialects and the one value that comes out of them. Nothing is contacted, and nothing read but the
words.

    rsh         [options] HOST [options] WORDS...     mpirun, Hydra, people
    ssh         the same, for launchers that start ssh and nothing else
    kubexec.sh  [options] HOST WORDS...               where nothing after the host is an option

After `--` no word is an option, be it before the host or behind it. Of an option or setting that is given twice
the first counts. Both are as OpenSSH has it.

The words after the host are one shell string, joined by single spaces, as with ssh. Their quoting is the
launcher's: Open MPI passes words with literal quotes in them, and parentheses as words of their own. To start
the words as they are, or to quote them again, breaks that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address

from mpirt.errors import UsageError
from mpirt.names import RSH
from mpirt.rsh.invocation.options import SFTP, Does, Given, Wants, of_option, read_number, read_word
from mpirt.values import Value

KUBEXEC = "kubexec.sh"

_LONGEST_LABEL = 63
_LABEL_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_LABEL = (
    f"is of lower-case letters, digits and dashes, up to {_LONGEST_LABEL} of them, and begins and ends with a "
    "letter or digit"
)
_OWN_WITH_VALUE = ("namespace", "container", "context")
_OWN = ("help", "version", "direct")
# The agent has obeyed it already.
_DONE = "direct"


class Invocation(Value):
    """What is to be done, as far as the command line says it."""

    pod: str
    """By its name, or by the first label of its host name; its address if `is_address`."""
    words: tuple[str, ...]
    """The command, as it came."""
    namespace: str = ""
    """By an option, or from a full host name; empty where neither names one."""
    service: str = ""
    """The second label of a host name, for looking up who has it."""
    is_address: bool = False
    container: str = ""
    context: str = ""
    null_stdin: bool = False
    verbose: bool = False
    connect_seconds: float | None = None
    attempts: int = 0
    """How many there may be; 0 where nothing was said."""
    alive_seconds: float | None = None
    """The time between signs of life; 0 switches them off, None is nothing said."""
    alive_count: int | None = None
    """How many may stay without an answer; likewise."""
    send_env: tuple[str, ...] = ()
    set_env: tuple[str, ...] = ()
    """The values of SendEnv and SetEnv, as they came."""


class Host(Value):
    """A host's name, taken apart."""

    name: str
    """The first label; all of an address."""
    service: str = ""
    namespace: str = ""
    is_address: bool = False


def parse(program: str, words: Sequence[str]) -> Invocation | Wants:
    """Read the words after the program's name. Raises UsageError."""
    name = program.rpartition("/")[2]
    # Under another's name it is as quiet as that is: launchers pass -v to have ssh's own words, if they do at all.
    return _Reader(words, options_follow=name != KUBEXEC, may_be_verbose=name == RSH).read()


class _Reader:
    """Options, the host, options, the command."""

    __slots__ = ("_given", "_may_be_verbose", "_options_follow", "_own", "_rest")

    def __init__(self, words: Sequence[str], *, options_follow: bool, may_be_verbose: bool) -> None:
        self._rest = list(words)
        self._options_follow = options_follow
        self._may_be_verbose = may_be_verbose
        self._given: list[Given] = []
        self._own: dict[str, str] = {}

    def read(self) -> Invocation | Wants:
        self._options()
        name = self._rest.pop(0) if self._rest else ""
        if self._options_follow:
            self._options()
        return self._wants() or self._invocation(parse_host(name))

    def _options(self) -> None:
        """Take options off the front. A lone dash is none."""
        while self._rest and self._rest[0].startswith("-") and self._rest[0] != "-":
            word = self._rest.pop(0)
            if word == "--":
                self._options_follow = False
                return
            if word.startswith("--"):
                self._long_option(word)
            else:
                self._given += read_word(word, self._values())

    def _long_option(self, word: str) -> None:
        name, equals, text = word[2:].partition("=")
        if name in _OWN:
            if equals:
                raise UsageError(f"option --{name} takes no value")
            if name != _DONE:
                self._own.setdefault("wants", name)
        elif name in _OWN_WITH_VALUE:
            text = text if equals else next(self._values(), "")
            if not text:
                raise UsageError(f"option --{name} needs a value, as in: --{name} VALUE")
            self._own.setdefault(name, text)
        else:
            *others, last = (f"--{known}" for known in (*_OWN_WITH_VALUE, *_OWN))
            raise UsageError(f"unknown option {word!r}; there are {', '.join(others)} and {last}, and ssh's own")

    def _values(self) -> Iterator[str]:
        while self._rest:
            yield self._rest.pop(0)

    def _wants(self) -> Wants | None:
        own = self._own.get("wants") or ("help" if self._was_given(Does.HELP) else "")
        if own or self._was_given(Does.VERSION):
            return Wants(own or "V")
        return None

    def _invocation(self, host: Host) -> Invocation:
        words = tuple(self._rest)
        if not any(word.strip() for word in words):
            raise UsageError(
                f"no command for {host.name}; write it after the host, as in: mpirt-rsh {host.name} hostname"
            )
        return Invocation(
            pod=host.name,
            words=_subsystem(words, host.name) if self._was_given(Does.SUBSYSTEM) else words,
            namespace=self._label("namespace") or host.namespace,
            service=host.service,
            is_address=host.is_address,
            container=self._label("container"),
            context=self._own.get("context", ""),
            null_stdin=self._was_given(Does.NO_STDIN),
            verbose=self._may_be_verbose and self._was_given(Does.VERBOSE),
            # No limit, for ssh; one has to be.
            connect_seconds=self._seconds("ConnectTimeout") or None,
            attempts=self._number("ConnectionAttempts", 1, 1000) or 0,
            alive_seconds=self._seconds("ServerAliveInterval"),
            alive_count=self._number("ServerAliveCountMax", 0, 1_000_000),
            send_env=self._all("sendenv"),
            set_env=self._all("setenv"),
        )

    def _was_given(self, does: Does) -> bool:
        return any(given.does is does for given in self._given)

    def _first(self, name: str) -> str:
        return next(iter(self._all(name.lower())), "")

    def _all(self, name: str) -> tuple[str, ...]:
        return tuple(given.text for given in self._given if given.does is Does.SET and given.name == name)

    def _label(self, option: str) -> str:
        text = self._own.get(option, "")
        if text and not _is_label(text):
            raise UsageError(f"--{option} {text!r} can't be: a {option}'s name {_LABEL}")
        return text

    def _seconds(self, name: str) -> float | None:
        text = self._first(name)
        return of_option(name, text) if text else None

    def _number(self, name: str, least: int, most: int) -> int | None:
        text = self._first(name)
        if not text:
            return None
        number = read_number(text)
        if number is None or not least <= number <= most:
            raise UsageError(f"-o {name}={text}: expected a number from {least} to {most}")
        return number


def parse_host(host: str) -> Host:
    """Take [USER@]POD[.SERVICE[.NAMESPACE[.svc...]]] or [USER@]ADDRESS apart. Raises UsageError."""
    if not host:
        raise UsageError("no host; the form is: mpirt-rsh [options] HOST COMMAND...")
    user, at, name = host.rpartition("@")
    if at and not user:
        raise UsageError(f"{host!r} has no user before the @")
    if _is_address(name):
        return Host(name, is_address=True)
    labels = name.removesuffix(".").split(".")
    for label in labels:
        if not _is_label(label):
            raise UsageError(f"{host!r} can't be a pod: a pod's name {_LABEL}")
    pod, *others = labels
    return Host(pod, service=others[0] if others else "", namespace=_namespace(others))


def _subsystem(words: tuple[str, ...], pod: str) -> tuple[str, ...]:
    if (name := " ".join(words)) != "sftp":
        raise UsageError(f"no subsystem {name!r} in {pod}; -s knows sftp only")
    return (SFTP,)


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


def _is_address(name: str) -> bool:
    try:
        return getattr(ip_address(name), "scope_id", None) is None
    except ValueError:
        return False
