"""
What must be known about the launchers whose daemons are started through us.

Owns: the rules for the commands of Open MPI and PRRTE (orted, prted). A command that isn't theirs passes
untouched: Hydra's is known by its program, Horovod's need nothing.

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

from mpirt import launchenv
from mpirt.errors import UsageError
from mpirt.values import Value


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
    text = values.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else default
