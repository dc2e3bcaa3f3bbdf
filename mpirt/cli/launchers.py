"""
What launchers are given: `mpirt hosts`, `mpirt env` and `mpirt shims`.

Owns: where a list of hosts comes from (mpirt.hosts has its forms); which launcher wants which variables
(mpirt.launchenv has these); and mpirt-rsh under the names that launchers start without asking: which names, what
may be replaced, and what is said about it. A shim is a link to mpirt-rsh, which knows by the name under which it
was started what dialect is spoken to it. Whatever else stands in its place is not from mpirt.
"""

from __future__ import annotations

import filecmp
import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from mpirt import launchenv, names
from mpirt.errors import ConfigError, SpecError, UsageError
from mpirt.hosts import Form, parse_hosts, render

_SSH = "ssh"
_REMEDY = "run it as root, while the image is built for example, or mount one there"

Variables = Mapping[str, str]

LAUNCHERS: Mapping[str, Callable[[int], Variables]] = {
    "openmpi4": lambda workers: launchenv.open_mpi_4(names.RSH, workers),
    "openmpi5": lambda workers: launchenv.open_mpi_5(names.RSH, workers),
    "mpich": lambda _workers: launchenv.mpich(names.RSH),
    "intel": lambda _workers: launchenv.intel(names.RSH),
    # horovodrun compares the agent with this path, letter by letter, and takes ssh otherwise.
    "horovod": lambda workers: launchenv.open_mpi_4(names.KUBEXEC_PATH, workers),
}

WORKERS = click.option(
    "--workers", type=click.IntRange(min=1), default=128, show_default=True, help="How many there will be at most."
)


def export_lines(variables: Variables) -> str:
    """Lines of a POSIX shell that set them."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


@click.command()
@WORKERS
@click.argument("launcher", type=click.Choice(list(LAUNCHERS)))
def env(workers: int, launcher: str) -> None:
    """Print the variables that make a launcher start its commands through mpirt-rsh.

    They are lines of a POSIX shell. Workers need nothing of mpirt, but for horovodrun, which takes the agent only
    from /etc/mpi/kubexec.sh: `mpirt shims` puts mpirt-rsh there under that name, in the launcher.

    \b
    Examples:
      eval "$(mpirt env openmpi4)" && mpirun --hostfile hosts hostname
      mpirt env openmpi5 --workers 300
    """
    click.echo(export_lines(LAUNCHERS[launcher](workers)), nl=False)


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in Form]),
    default=Form.HOROVOD.value,
    show_default=True,
    help="The launcher that reads the list.",
)
@click.argument("file", metavar="FILE|-")
def hosts(form: str, file: str) -> None:
    """Write a list of hosts in the form that another launcher reads.

    FILE is such a list, or - for standard input: one host a line as Open MPI, Hydra or Horovod write it, with
    comments and blank lines where you like. A host that is listed again gets the sum of its slots.

    \b
    horovod   NAME:SLOTS, what a discovery script of horovodrun prints
    hostfile  NAME slots=SLOTS, what mpirun and horovodrun take as --hostfile
    hydra     NAME:SLOTS, what MPICH's and Intel MPI's mpiexec take as -f
    json      one array of {"name": ..., "slots": ...}

    \b
    Examples:
      mpirt hosts --format hydra /etc/mpi/hostfile > machines
      sort "$PBS_NODEFILE" | mpirt hosts --format hostfile -
    """
    source = "standard input" if file == "-" else file
    text = _read(file, source)
    try:
        found = parse_hosts(text)
    except SpecError as error:
        raise SpecError(f"{source}, {error.field}", error.problem) from error
    click.echo(render(found, Form(form)), nl=False)


def _read(file: str, source: str) -> str:
    try:
        # Descriptor 0 and not sys.stdin, which is None for a program that was started without one.
        with open(0, "rb", closefd=False) if file == "-" else Path(file).open("rb") as stream:
            # Editors on other systems put a byte order mark in front.
            return stream.read().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SpecError(source, f"is not a text file: byte {error.start} is not UTF-8") from error


class _NotPlaced(Exception):
    """Why a shim is not where it should be."""


@click.command()
@click.option(
    "--kubexec",
    type=click.Path(path_type=Path),
    default=Path(names.KUBEXEC_PATH),
    show_default=True,
    help="Where kubexec.sh is to be; horovodrun looks nowhere else than at the default.",
)
@click.option("--force", is_flag=True, help="Replace files that are not from mpirt.")
@WORKERS
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def shims(*, kubexec: Path, force: bool, workers: int, folder: Path) -> None:
    """Put mpirt-rsh into DIR as `ssh`, and to /etc/mpi/kubexec.sh where that can be written.

    For a launcher image with `pip install mpirt` in it. horovodrun starts ssh, or, if configured, kubexec.sh,
    and no other agent. Nothing that is not from mpirt is replaced without --force. Printed are lines of a POSIX
    shell that make horovodrun and Open MPI 4 use it; `mpirt env` has those for other launchers.

    \b
    Examples:
      eval "$(mpirt shims /opt/shims)" && horovodrun -np 2 -H worker-0:1,worker-1:1 python train.py
      RUN pip install mpirt && mpirt shims /opt/shims
    """
    agent = find_agent(sys.argv[0])
    folder = folder.absolute()
    try:
        _place(folder / _SSH, agent, force=force)
    except _NotPlaced as error:
        raise ConfigError(str(error)) from error
    placed = None
    try:
        placed = _place(kubexec.absolute(), agent, force=force)
    except _NotPlaced as error:
        click.echo(f"{names.MPIRT}: {error}; horovodrun takes {folder / _SSH} instead", err=True)
    click.echo(shell_lines(folder, kubexec=placed, workers=workers), nl=False)


def shell_lines(folder: Path, *, kubexec: Path | None, workers: int) -> str:
    """What makes launchers use the shims. A kubexec.sh that isn't at its place has yet to be taken there."""
    launcher = "horovod" if kubexec == Path(names.KUBEXEC_PATH) else "openmpi4"
    return f'export PATH={shlex.quote(str(folder))}:"$PATH"\n{export_lines(LAUNCHERS[launcher](workers))}'


def find_agent(program: str) -> Path:
    """The mpirt-rsh that belongs to this program, else the one on PATH. Raises ConfigError."""
    beside = Path(program).absolute().with_name(names.RSH)
    if "/" in program and os.access(beside, os.X_OK):
        return beside
    found = shutil.which(names.RSH)
    if found is None:
        raise ConfigError(f"{names.RSH} is neither beside this program nor on PATH; run: pip install mpirt")
    return Path(found).absolute()


def _place(shim: Path, agent: Path, *, force: bool) -> Path:
    """Have the agent under this name, and return it. Raises _NotPlaced."""
    try:
        if _is_agent(shim, agent):
            done = "is there already"
        elif force or _is_free(shim):
            _link(shim, agent)
            done = f"is {agent} now"
        else:
            raise _NotPlaced(f"{shim} is there already, and not from mpirt; --force replaces it")
    except OSError as error:
        raise _NotPlaced(f"can't write {shim}: {error.strerror}; {_REMEDY}") from error
    click.echo(f"{names.MPIRT}: {shim} {done}", err=True)
    return shim


def _is_agent(shim: Path, agent: Path) -> bool:
    """Whether it is the agent itself, a link to it, or a copy, such as one that a runtime folder brought."""
    return shim.is_file() and filecmp.cmp(shim, agent, shallow=False)


def _is_free(shim: Path) -> bool:
    """Whether nothing is lost when it is replaced: nothing is there, or a link to another mpirt-rsh."""
    if not shim.is_symlink():
        return not shim.exists()
    return shim.readlink().name == names.RSH


def _link(shim: Path, agent: Path) -> None:
    """In one step, so that a launcher that starts it meanwhile finds the former or the new one."""
    shim.parent.mkdir(parents=True, exist_ok=True)
    fresh = shim.with_name(f".{shim.name}-{secrets.token_hex(4)}")
    fresh.symlink_to(agent)
    try:
        fresh.replace(shim)
    finally:
        fresh.unlink(missing_ok=True)
