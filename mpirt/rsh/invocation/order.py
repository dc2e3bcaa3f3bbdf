"""
What the pod's side is asked to do: the command, and the variables that travel with it (ssh's SendEnv and SetEnv).

Owns: the value, the one string that ssh makes of a command's words, which variables of ours match, reading what
is set, and the rules for the daemons of Open MPI and PRRTE (orted, prted). Nothing is read but what is handed in.
No I/O.

As with ssh, a pattern behind a dash takes back the patterns before it that it matches, and of a name that is set
twice the first value counts. Unlike ssh, SetEnv may be given several times: all of them count. What sshd would
accept is not asked: a pod has no such list.

A command that is no such daemon passes untouched: Hydra's is known by its program, Horovod's need nothing. Of the
others:

- The daemon checks that the agent it is told of exists in its own pod. The option takes a list, of which the
  first that is found counts, so "AGENT : sh" satisfies it in any image: workers need nothing of ours.
- With tree spawning and more daemons than a node of the tree has children, workers would have to start daemons
  themselves. They can't: refused at the first call rather than found out at the 65th pod.
- Without tree spawning, the daemon detaches from the session that started it unless it is told not to. Nobody
  would see it die, so the word that tells it to is taken out; with more daemons than the launcher starts at a
  time it has to be told by the variable, for it waits for one to detach before it starts the next.

Hydra's mpiexec ends as soon as the connection of a proxy is closed, whatever that means. After a good end it waits
for its agents.

Tried with Open MPI 4.1.4 and with 5.0.7, whose daemon is PRRTE's, in workers that have neither ssh nor rsh.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from mpirt import launchenv
from mpirt.errors import UsageError
from mpirt.rsh.invocation.options import read_number
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
            if not _is_name(name):
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
        if (
            name not in found
            and _is_name(name)
            and name not in _READ_ONLY
            and any(matches(name, pattern) for pattern in patterns)
        ):
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
    if not _is_name(name):
        raise UsageError(f"-o SetEnv: {name!r} is no name for an environment variable")
    if name in _READ_ONLY:
        raise UsageError(f"-o SetEnv: {name!r} can't be set: shells do that themselves")
    return name


def _is_name(name: str) -> bool:
    """Whether a shell can have a variable of this name."""
    return name.isidentifier() and name.isascii()


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


class Daemon(Value):
    """A launcher's daemon, and how its command is written."""

    program: str
    parameters: frozenset[str]
    """What precedes a parameter and its value."""
    agents: frozenset[str]
    """The parameters that name the agent."""
    concurrent: str
    """The parameter that says how many are started at a time."""
    variables: Mapping[str, str]
    """What a user sets so that every daemon is started from here and keeps its session."""


OPEN_MPI_4 = Daemon(
    program="orted",
    parameters=frozenset({"-mca", "--mca", "-gmca", "--gmca"}),
    agents=frozenset({"plm_rsh_agent"}),
    concurrent="plm_rsh_num_concurrent",
    variables=launchenv.OPEN_MPI_4,
)
PRRTE = Daemon(
    program="prted",
    parameters=frozenset({"-mca", "--mca", "--prtemca"}),
    agents=frozenset({"plm_ssh_agent", "plm_rsh_agent"}),
    concurrent="plm_ssh_num_concurrent",
    variables=launchenv.PRRTE,
)
DAEMONS = (OPEN_MPI_4, PRRTE)

# MPICH's, and Intel MPI's since 2019.
_HYDRA = ("hydra_pmi_proxy", "hydra_bstrap_proxy")
# Children per node of the tree, and daemons that are started at a time, where no parameter says otherwise.
_RADIX = 64
_CONCURRENT = 128
_TREE_SPAWN = "--tree-spawn"
_DETACH = "--daemonize"
# An agent's path with one of these in it means more to the pod's shell than a path.
_UNQUOTABLE = frozenset('"\\$`')


def prepared(words: Sequence[str]) -> tuple[str, ...]:
    """The command as it is to be run in the pod. Raises UsageError where it would come to harm there."""
    daemon = _daemon(words)
    if daemon is None:
        return tuple(words)
    _check_size(words, daemon)
    return tuple(_with_fallback(word, name, daemon) for word, name in _named(words, daemon) if word != _DETACH)


def starts_daemon(words: Sequence[str]) -> bool:
    """Whether the command is a launcher's daemon."""
    return _daemon(words) is not None


def is_of_prrte(words: Sequence[str]) -> bool:
    """Whether the command is the daemon of Open MPI 5's launcher."""
    return _daemon(words) is PRRTE


def is_of_hydra(words: Sequence[str]) -> bool:
    """Whether the command is a proxy of the mpiexec of MPICH or Intel MPI."""
    return any(_starts(word, program) for word in words for program in _HYDRA)


def _daemon(words: Sequence[str]) -> Daemon | None:
    return next((one for one in DAEMONS if any(_starts(word, one.program) for word in words)), None)


def _starts(word: str, program: str) -> bool:
    """Whether a word ends by starting the program: its path may stand behind assignments in the same word."""
    return bool(word.strip()) and word.rsplit(maxsplit=1)[-1].rstrip('"').rpartition("/")[2] == program


def _named(words: Sequence[str], daemon: Daemon) -> Iterator[tuple[str, str]]:
    """Each word, with the name of the parameter whose value it is."""
    for number, word in enumerate(words):
        is_value = number > 1 and words[number - 2] in daemon.parameters
        yield word, words[number - 1] if is_value else ""


def _with_fallback(word: str, name: str, daemon: Daemon) -> str:
    agents = word.strip('"')
    if name not in daemon.agents or ":" in agents or not agents.strip() or not _UNQUOTABLE.isdisjoint(agents):
        return word
    return f'"{agents} : sh"'


def _check_size(words: Sequence[str], daemon: Daemon) -> None:
    values = {name: word.strip('"') for word, name in _named(words, daemon) if name}
    # The launcher itself counts as one.
    daemons = _number(values, "ess_base_num_procs", 0) - 1
    if _TREE_SPAWN in words and daemons > (radix := _number(values, "routed_radix", _RADIX)):
        problem = f"with {daemons} workers some would have to start others: a tree's node has {radix} children"
    elif _DETACH in words and daemons > (most := _number(values, daemon.concurrent, _CONCURRENT)):
        problem = f"with {daemons} workers the launcher waits for daemons to detach: it starts {most} at a time"
    else:
        return
    remedy = " ".join(f"{name}={text.format(daemons=daemons)}" for name, text in daemon.variables.items())
    raise UsageError(f"{problem}; set {remedy}")


def _number(values: Mapping[str, str], name: str, default: int) -> int:
    number = read_number(values.get(name, ""))
    return default if number is None else number
