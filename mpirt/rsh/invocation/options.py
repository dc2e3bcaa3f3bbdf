"""
The options: ssh's, and what becomes of each here; the forms of what is given with them; the help that lists them.

Owns: the table, reading one word of options, the times of ssh's options and of our own variables, what `ssh -s`
starts, and the replies that run no command. Nothing is known of hosts or commands, and nothing is printed here.

Launchers put ssh's options before the host and after it, without asking which program they start. What only makes
sense for ssh is taken and ignored; what a user would miss (a forwarded port, a background ssh) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from mpirt.errors import UsageError
from mpirt.names import RSH
from mpirt.values import Value


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


# Of an unsigned number of 64 bits.
_MOST_DIGITS = 20
# ssh takes longer times, too; a job that waits for a week waits for ever.
LONGEST = 604_800.0
_FORM = "expected a time such as 30, 10s or 1h30m"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def of_option(name: str, text: str) -> float:
    """The seconds of a setting of ssh's; what is longer than a week is a week. Raises UsageError."""
    seconds = 0.0 if text.lower() == "none" else read_time(text)
    if seconds is None:
        raise UsageError(f"-o {name}={text}: {_FORM}")
    return min(seconds, LONGEST)


def of_variable(environ: Mapping[str, str], name: str, default: float, *, may_be_zero: bool = True) -> float:
    """The seconds of a variable of ours, a week at most. Raises UsageError."""
    text = environ.get(name, "")
    if not text:
        return default
    seconds = read_time(text)
    if seconds is None or seconds > LONGEST or not (seconds or may_be_zero):
        above = "" if may_be_zero else "above 0 and "
        raise UsageError(f"{name}={text[:20]}: {_FORM}, {above}at most a week")
    return seconds


def read_number(text: str) -> int | None:
    """A whole number; None where it is none, or longer than any that is meant: Python refuses long ones."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def read_time(text: str) -> float | None:
    """Seconds out of 90, 90s or 1h30m, as ssh reads a time; None where it is none."""
    total, number, had_seconds = 0.0, "", False
    for letter in text.lower() if text[-1:].isalpha() else f"{text}s":
        if letter in "0123456789.":
            number += letter
            continue
        unit = _UNITS.get(letter)
        # Only seconds may have a fraction, and only the last number has no unit.
        if unit is None or not _is_number(number, whole=unit > 1) or (unit == 1 and had_seconds):
            return None
        total, number, had_seconds = total + float(number) * unit, "", had_seconds or unit == 1
    return total


def _is_number(text: str, *, whole: bool) -> bool:
    return text[-1:].isdigit() and text.count(".") <= (0 if whole else 1)


# Where Debian, Red Hat, Alpine (Arch and SUSE, too) and those who build it themselves have it.
_PLACES = (
    "/usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server "
    "/usr/libexec/sftp-server /usr/lib/sftp-server /usr/local/libexec/sftp-server"
)
_MISSING = "mpirt-rsh: no sftp-server in this container; install one, copy by tar, or with: scp -O"

# For the pod's shell. It is not exported, so what is started does not see the variable.
SFTP = (
    f'for mpirt_place in $(command -v sftp-server) {_PLACES}; do [ -x "$mpirt_place" ] && exec "$mpirt_place"; '
    f'done; echo "{_MISSING}" >&2; exit 127'
)


class Wants(Enum):
    """A person wants to be told something, and nothing to be done."""

    HELP = "help"
    VERSION = "version"
    SSH_VERSION = "V"
    """As ssh has it: on stderr."""


HELP = """\
Usage: mpirt-rsh [options] HOST [options] COMMAND...

Runs COMMAND in a pod through the Kubernetes API, and ends as it ends. COMMAND is one shell string for the pod's
/bin/sh; words are joined by spaces, as ssh does it.

HOST is one of:
  POD, POD.SERVICE.NAMESPACE.svc...  a pod's name, or its host name; USER@HOST is understood
  JOB-INDEX, JOB-INDEX.SERVICE       a pod of an Indexed Job, a JobSet or a TrainJob
  10.0.0.7, fd00::7                  a pod's address

For launchers:
  OMPI_MCA_plm_rsh_agent=mpirt-rsh mpirun ...                     Open MPI 4
  PRTE_MCA_plm_ssh_agent=mpirt-rsh mpirun ...                     Open MPI 5
  HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC=mpirt-rsh mpiexec ...    MPICH, Intel MPI
  and as /etc/mpi/kubexec.sh or under the name ssh for horovodrun.

Examples:
  mpirt-rsh worker-0 hostname
  mpirt-rsh worker-0 'cd /data && ls | wc -l'
  mpirt-rsh --namespace ml --container main worker-0 nvidia-smi
  mpirt-rsh -o SetEnv=OMP_NUM_THREADS=4 worker-0 ./solve
  tar c . | mpirt-rsh worker-0 'tar x -C /work'
  rsync -e mpirt-rsh -a data/ worker-0:/data/
  sftp -S mpirt-rsh worker-0

Options:
  --namespace NAME       the pod's namespace; else that of HOST, else that of the kubeconfig or of this pod
  --container NAME       the container, where a pod has several
  --context NAME         a context of the kubeconfig
  -v                     log to stderr, with times
  --direct               as the first word: a switchboard of its own, as MPIRT_SWITCHBOARD=off has it
  -h, --help
  --version

Options of ssh; what has no meaning here is taken and ignored:
  -n, -o StdinNull=yes   no stdin
  -s HOST sftp           the pod's sftp-server
  -G HOST                print host, user and port
  -O check|stop|exit     there is never a shared connection
  -o ConnectTimeout=T    how long to wait for the pod and its container (60), such as 30, 10s or 1h30m
  -o ConnectionAttempts=N
  -o ServerAliveInterval=T, -o ServerAliveCountMax=N
                         how often to send keep-alives, and how many may stay unanswered
  -o SendEnv=PATTERN...  variables to pass to the command, such as LC_* or -LC_ALL
  -o SetEnv=NAME=VALUE...
  --                     no more options

Environment:
  KUBECONFIG             the cluster; without it ~/.kube/config, or the pod's own service account
  HTTPS_PROXY, NO_PROXY  the way to it, as for kubectl
  MPIRT_CONTEXT          as --context
  MPIRT_CONTAINER        as --container
  MPIRT_CONNECT_TIMEOUT  as ConnectTimeout
  MPIRT_WAIT             how long to wait until the pod is Ready, before anything else (0: not at all)
  MPIRT_SHELL            the shell in the pod that gets COMMAND, such as /bin/bash (/bin/sh)
  MPIRT_PROTOCOL         v4 or v5, the exec protocol that is tried first (v4)
  MPIRT_LEASE            how long a command runs on without a connection (180; 0: it ends with it)
  MPIRT_NODE_PATIENCE    how long its node may be unreachable while the API server answers (20)
  MPIRT_GRACE            seconds from TERM to KILL when the command is ended (3; 30 after the lease;
                         if the pod is deleted, its grace period less 3 s)
  MPIRT_FENCE            JOB or JOB:ATTEMPT; kills what earlier launchers of JOB left in the container
  MPIRT_SWITCHBOARD      off: a switchboard for each command, not one for all (on);
                         or the folder of its socket, such as /run/mpirt (/dev/shm, $TMPDIR or /tmp)
  MPIRT_LOG=debug        as -v

Exit code: the command's own, 128 and the number for a signal; from 240 on, see docs/exit-codes.md.
"""


class Reply(Value):
    """What to print."""

    stdout: str = ""
    stderr: str = ""


def reply(asked: Wants, *, version: str) -> Reply:
    """Answer what was asked."""
    if asked is Wants.HELP:
        return Reply(stdout=HELP)
    told = f"{RSH} {version}\n"
    # Programs that ask as of ssh look at stderr, where ssh has it.
    return Reply(stdout=told) if asked is Wants.VERSION else Reply(stderr=told)


def version(package: str = "mpirt") -> str:
    """That of an installed package; empty if it is not installed."""
    # Brings email and zipfile: milliseconds of the first command's start, for what is hardly ever asked.
    from importlib import metadata  # noqa: PLC0415

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
